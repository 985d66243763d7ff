// Step 4: the budget as a bar: spent, this release, left, and what the rest still buys.

import { brief, element, make, stated } from "./elements.js";
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
  const label = `${title}: spent ${brief(spent)}, this release ${brief(now)}, ${over ? `${brief(spent + now - total)} too much` : `left ${brief(left)}`}, of ${brief(total)}`;
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
      ...row("spent", "spent", brief(spent)),
      ...row(over ? "over" : "now", "this release", brief(now)),
      ...row("left", over ? "missing" : "left after it", brief(over ? spent + now - total : left)),
      ...row("none", "total", brief(total)),
    ),
  );
}

function draw() {
  const { dataset, estimate } = state;
  if (dataset === null || !dataset.described) return;
  const now = stated(element("epsilon").value) || 0;
  const { budget, analyst_budget: own } = dataset;
  const cost = estimate?.cost ?? null;
  // A budget per period is known for the period that was asked about.
  const spent = budget.every && cost !== null && own === null ? Math.max(0, budget.epsilon - cost.remaining) : budget.spent;
  const question = { item: element("item").value, k: stated(element("k").value) || 1, ordered: element("ordered").checked, by: element("by").value, filter: element("filter").value, period: budget.every ? element("period").value : null, values: element("with-values").checked };
  element("summary").textContent = `${questionWords(question)}.`;
  const parts = [bar(budget.every ? `Budget of each ${budget.every} (epsilon)` : "Budget of the data (epsilon)", { total: budget.epsilon, spent, now })];
  if (own) parts.push(bar("Your own budget (epsilon)", { total: own.epsilon, spent: own.spent, now }));
  if (budget.delta > 0 && cost !== null) parts.push(make("p", { class: "hint" }, `Delta: this release ${brief(cost.delta)}, total ${brief(budget.delta)}.`));
  element("budget").replaceChildren(...parts);
  const words = cost !== null && Math.abs(cost.epsilon - now) < 1e-9 * now ? (estimate.buys?.words ?? "") : "";
  element("buys").textContent = words && `${words[0].toUpperCase()}${words.slice(1)}${words.endsWith(".") ? "" : "."}`;
}

export function startBudget() {
  for (const name of ["dataset", "question", "epsilon", "estimate"]) on(name, draw);
}
