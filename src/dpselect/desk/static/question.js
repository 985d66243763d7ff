// Step 2: the question, as the form states it.

import { brief, clearErrors, count, element, focusOn, make, options, setError, setErrors, show, stated } from "./elements.js";
import { alone, on, state, tell } from "./state.js";

export const FIELDS = ["item", "k", "epsilon", "delta", "ordered", "aim", "values", "filter", "by", "period", "purpose"];
const LARGEST_K = 1_000_000;

// Whether the chosen column needs a delta, once a column is chosen.
let deltaIsNeeded = null;

function fill() {
  const { dataset } = state;
  if (!dataset.described) return;
  const { items, groups, filters, period, max_groups_per_person: most } = dataset.questions;
  options(element("item"), Object.keys(items).map((name) => [name, name]), element("item").value);
  options(element("by"), [["", "(all together)"], ...Object.keys(groups).map((name) => [name, `${name} (${groups[name]} groups)`])], element("by").value);
  options(element("filter"), [["", "(all rows)"], ...filters.map((name) => [name, name])], element("filter").value);
  show("by-field", Object.keys(groups).length > 0);
  show("filter-field", filters.length > 0);
  for (const id of ["period-field", "discover-period"]) show(id, period !== null);
  element("by-hint").textContent =
    most > 1 ? `A person counts in at most ${most} groups; epsilon is shared by these.` : "A person counts in one group, so that all groups together cost what one answer costs.";
  if (period !== null) {
    const names = finishedPeriods(period);
    element("period-list").replaceChildren(...names.map((value) => make("option", { value })));
    if (element("period").value === "") element("period").value = names[0];
    element("period-hint").textContent = `A ${period} that is over, such as ${names[0]}. Each ${period} has its own budget.`;
  }
  showList();
}

function showList() {
  const { dataset } = state;
  const name = element("item").value;
  const unknown = dataset.questions.items[name]?.source === "unknown";
  const size = dataset.questions.items[name]?.size;
  // Ten of three items cannot be asked for, and all of them say nothing.
  if (size && stated(element("k").value) > size) element("k").value = `${Math.ceil(size / 2)}`;
  element("list-source").textContent = unknown
    ? "nobody can list the items, so it stays private which exist. This needs a delta, and the answer may be shorter than k."
    : `a public list${size ? ` of ${count(size, "item")}` : ""}. Items outside of it are ignored.`;
  show("open-discover", alone() && unknown);
  if (!unknown) show("discover", false);
  show("delta-field", unknown || dataset.budget.delta > 0);
  if (deltaIsNeeded !== unknown) element("delta").value = unknown ? `${Number(((dataset.budget.delta || 1e-6) / 10).toPrecision(2))}` : "0";
  deltaIsNeeded = unknown;
  element("delta-hint").textContent = `Delta is the probability with which the protection may fail. ${unknown ? "It is needed because nobody can list the items." : "0 is best."} The total is ${brief(dataset.budget.delta)}.`;
}

// The names of the last periods that are over, in UTC, newest first.
function finishedPeriods(unit, count = 12) {
  const now = new Date();
  return Array.from({ length: count }, (_, back) => {
    const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
    if (unit === "month") return new Date(Date.UTC(year, month - 1 - back, 1)).toISOString().slice(0, 7);
    if (unit === "day") return new Date(Date.UTC(year, month, day - 1 - back)).toISOString().slice(0, 10);
    return isoWeek(new Date(Date.UTC(year, month, day - 7 * (back + 1))));
  });
}

// A week belongs to the year that its Thursday is in.
function isoWeek(date) {
  const thursday = new Date(date.getTime() + (4 - (date.getUTCDay() || 7)) * 86_400_000);
  const first = Date.UTC(thursday.getUTCFullYear(), 0, 1);
  return `${thursday.getUTCFullYear()}-W${String(1 + Math.floor((thursday - first) / (7 * 86_400_000))).padStart(2, "0")}`;
}

// The question, or null after saying beside the fields what is wrong with them; `quiet` leaves all messages as they are.
export function readQuestion({ focus = false, quiet = false } = {}) {
  const question = {
    item: element("item").value,
    k: stated(element("k").value),
    epsilon: stated(element("epsilon").value),
    delta: element("delta-field").hidden ? 0 : stated(element("delta").value),
    ordered: element("ordered").checked,
    aim: element("aim").value,
    values: element("with-values").checked ? Number(element("values").value) : null,
    filter: element("filter").value || null,
    by: element("by").value || null,
    period: element("period-field").hidden ? null : element("period").value.trim() || null,
    purpose: element("purpose").value.trim(),
  };
  const wrong = {};
  if (!Number.isInteger(question.k) || question.k < 1 || question.k > LARGEST_K) wrong.k = "k must be a whole number from 1 on, such as 10.";
  if (!(question.epsilon > 0 && Number.isFinite(question.epsilon))) wrong.epsilon = "Epsilon must be a number above 0, such as 1.";
  if (!(question.delta >= 0 && question.delta < 1)) wrong.delta = "Delta must be a number from 0 to below 1, such as 1e-7.";
  if (!element("period-field").hidden && question.period === null) wrong.period = "Name a period: each has its own budget.";
  if (quiet) return Object.keys(wrong).length === 0 ? question : null;
  clearErrors(FIELDS);
  show("use-rest", false);
  for (const [field, message] of Object.entries(wrong)) setError(field, message);
  const [first] = Object.keys(wrong);
  if (first !== undefined && focus) focusOn(first);
  return first === undefined ? question : null;
}

export function startQuestion() {
  on("another", () => { element("period").value = ""; });
  on("dataset", fill);
  for (const id of ["item", "k", "by", "filter", "period", "ordered", "with-values", "values", "aim"]) {
    element(id).addEventListener("input", () => {
      show("values-field", element("with-values").checked);
      if (id === "item") showList();
      tell("question");
    });
  }
}
