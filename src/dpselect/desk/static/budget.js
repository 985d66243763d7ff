// Beside the steps: the budget as a bar: spent, this release, left, and what the rest still buys.

import { above, asSentence, below, brief, element, make, stated, whole } from "./elements.js";
import { questionWords } from "./answer.js";
import { on, state } from "./state.js";

function bar(title, { total, spent, now }) {
  const left = Math.max(0, total - spent - now);
  const over = spent + now > total * (1 + 1e-9);
  const part = (name, amount) => {
    const made = make("span", { class: name });
    made.style.width = `${Math.min(100, (100 * amount) / total)}%`;
    return made;
  };
  const rest = Math.max(0, total - spent);
  const missing = above(spent + now - total);
  const label = `${title}: spent ${above(spent)}, ${now > 0 ? `this release ${above(now)}, ` : ""}${over ? `${missing} too much` : `left ${below(left)}`}, of ${brief(total)}`;
  const shape = make("div", { class: "bar", role: "img", "aria-label": label }, part("spent", spent), part(over ? "over" : "now", over ? rest : now));
  const row = (kind, name, amount) => [make("dt", {}, make("span", { class: `key ${kind}` }), name), make("dd", {}, amount)];
  return make(
    "div",
    { class: "budget-part" },
    make("h3", {}, title),
    shape,
    make(
      "dl",
      { class: "facts" },
      ...row("spent", "spent", above(spent)),
      ...(now > 0 ? row(over ? "over" : "now", "this release", above(now)) : []),
      ...row("left", over ? "missing" : now > 0 ? "left after it" : "left", over ? missing : below(left)),
      ...row("none", "total", brief(total)),
    ),
  );
}

function draw() {
  const { dataset, estimate } = state;
  if (dataset === null || !dataset.described) return;
  const asked = stated(element("epsilon").value) || 0;
  // Once it is released it is among what is spent, until something is changed.
  const now = state.released ? 0 : asked;
  const { budget, analyst_budget: own } = dataset;
  const cost = estimate?.cost ?? null;
  // What is spent in a period is known for the one that was estimated.
  const [ofData, ofOwn] = budget.every ? estimate?.budgets ?? [] : [budget, own];
  const each = cost?.period ? ` for ${cost.period}` : "";
  const question = { item: element("item").value, k: stated(element("k").value) || 1, ordered: element("ordered").checked, by: element("by").value, filter: element("filter").value, period: budget.every ? element("period").value : null, values: element("with-values").checked };
  element("summary").textContent = `${questionWords(question)}.`;
  const parts = [];
  if (ofData) parts.push(bar(`Budget of the data${each} (epsilon)`, { total: ofData.epsilon, spent: ofData.spent, now }));
  if (budget.lifetime) parts.push(bar(`Budget of all ${budget.every}s together (epsilon)`, { total: budget.lifetime, spent: budget.spent, now }));
  if (ofOwn) parts.push(bar(`Your own budget${each} (epsilon)`, { total: ofOwn.epsilon, spent: ofOwn.spent, now }));
  if (budget.delta > 0 && cost !== null) parts.push(make("p", { class: "hint" }, `Delta: this release ${above(cost.delta)}, left ${below(budget.remaining_delta)}, total ${brief(budget.delta)}.`));
  element("budget").replaceChildren(...parts);
  const isOfThis = cost !== null && Math.abs(cost.epsilon - asked) < 1e-9 * asked;
  element("buys").textContent = isOfThis ? (state.released ? more(estimate) : asSentence(estimate.buys.words)) : "";
}

// What is left after the release that is on the page.
function more({ cost, buys }) {
  return cost.affordable ? `What is left buys ${whole(buys.releases + 1)} more like it.` : "What is left does not pay for another like it.";
}

export function startBudget() {
  for (const name of ["another", "question", "epsilon"]) on(name, () => { state.released = false; });
  for (const name of ["dataset", "question", "epsilon", "estimate"]) on(name, draw);
}
