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
};

// Events: "dataset" (another one, or new facts of it), "question", "epsilon" and "estimate".
const changes = new EventTarget();
export const on = (name, listener) => changes.addEventListener(name, listener);
export const tell = (name) => changes.dispatchEvent(new Event(name));

export const alone = () => state.session.mode === "alone";
export const path = (rest) => `/v1/datasets/${encodeURIComponent(state.dataset.name)}/${rest}`;
