// What the steps share, and how they hear of changes.

export const state = {
  session: null,
  datasets: [],
  // The chosen data set, as the desk lists it.
  dataset: null,
  // The desk's last estimate for the question as it stands, or null.
  estimate: null,
  // The last release of this page: {key, question, dataset}.
  answered: null,
  // Whether the question as it stands was just released.
  released: false,
};

// Events: "dataset" (one is chosen, or has new facts), "another" (it is another one), "question", "epsilon", "estimate", "reload" (the
// facts may have changed) and "unauthorized".
const changes = new EventTarget();
export const on = (name, listener) => changes.addEventListener(name, listener);
export const tell = (name) => changes.dispatchEvent(new Event(name));

// What the curator stated of a data set, for step 1 and the commands; null where the desk does not tell.
export function statedFacts({ source, budget, questions, protects }) {
  if (!source?.person) return null;
  const { people, max_items_per_person, max_groups_per_person } = questions;
  const { epsilon, delta, every, lifetime } = budget;
  return { ...source, epsilon, delta, every, lifetime, protects, people, max_items_per_person, max_groups_per_person };
}

export const alone = () => state.session.mode === "alone";
export const path = (rest) => `/v1/datasets/${encodeURIComponent(state.dataset.name)}/${rest}`;
