// Step 1 for a desk on one's own machine: what the curator states about a data set, and discovery of its items.

import { call, clearPending, isOpen, keepPending, newKey, pending, sentence } from "./call.js";
import { above, clearErrors, count, element, focusOn, make, options, say, setError, setErrors, show, stated } from "./elements.js";
import { report } from "./epsilon.js";
import { alone, on, path, state, statedFacts, tell } from "./state.js";

const FIELDS = ["person", "epsilon", "delta", "items", "people", "max_items_per_person", "groups", "max_groups_per_person", "filters", "time", "every", "lifetime", "protects"].map((name) => `describe-${name}`);
const DISCOVERY = ["epsilon", "delta", "max_items_per_person", "at_least"].map((name) => `discover-${name}`);
let rows = 0;

// A control that names a column: a choice if the columns are known, else a text field.
function columnControl(id, chosen, { optional = false, described = "" } = {}) {
  const { schema } = state.dataset;
  const attributes = { id, "aria-describedby": described || null, autocomplete: "off" };
  if (!schema) return make("input", { ...attributes, value: chosen ?? "", placeholder: "name of the column" });
  const select = make("select", attributes);
  options(select, [["", optional ? "(none)" : "choose a column …"], ...schema.map((name) => [name, name])], chosen ?? "");
  return select;
}

const field = (id, label, control, hint) => make("div", { class: "field" }, make("label", { for: id }, label), control, hint ? make("p", { class: "hint", id: `${id}-hint` }, hint) : null, make("p", { class: "error", id: `${id}-error` }));

// A row of fields with a button that removes it, after which the keyboard is on the button that adds one.
function removable(row, label, add) {
  const remove = () => {
    row.remove();
    element(add).focus();
  };
  row.append(make("button", { type: "button", class: "quiet small-button", click: remove, "aria-label": label }, "Remove"));
  return row;
}

// Add a row of fields, and put the keyboard on the first of them.
function append(place, row) {
  element(place).append(row);
  row.querySelector("input, select").focus();
}

// An offered file that seems to list the values of a column, by its name: films.csv for film, cities.csv for city.
function likelyFile(column) {
  const starts = [column, column.replace(/y$/i, "ies")].map((name) => name.toLowerCase());
  const fits = (file) => starts.some((start) => file.split("/").pop().toLowerCase().startsWith(start)) && /\.(csv|txt|parquet)$/.test(file);
  return (column && (state.session.offered ?? []).find(fits)) || "";
}

const files = () => (state.session.offered ?? []).map((value) => make("option", { value }));

function itemRow(column = "", list = null) {
  const place = rows++;
  const [name, file, kind] = [`describe-item-${place}`, `describe-file-${place}`, `describe-list-${place}`];
  const control = columnControl(name, column, { described: `${name}-error` });
  const path = make("input", { id: file, list: `${file}-list`, value: list && list !== "unknown" ? list : likelyFile(column), autocomplete: "off", "aria-describedby": `${file}-hint ${file}-error` });
  control.addEventListener("input", () => { if (path.value === "") path.value = likelyFile(control.value); });
  const choice = (value, text) => make("label", { class: "choice" }, make("input", { type: "radio", name: kind, value, id: `${kind}-${value}`, checked: value === (list === "unknown" ? "unknown" : "file") }), make("span", {}, text));
  const fileField = field(file, "File with the list", path, "A CSV file with a column of the same name, in the folder of this desk.");
  fileField.classList.add("indent");
  const row = make(
    "div",
    { class: "repeated", "data-row": place },
    field(name, "Which column holds the items?", control),
    make(
      "fieldset",
      { class: "plain" },
      make("legend", {}, "Where does the list of possible items come from?"),
      choice("file", "From a public file, such as a catalogue. Best: no budget is spent on it."),
      fileField,
      make("datalist", { id: `${file}-list` }, ...files()),
      choice("discover", "From discovery: publish the list itself first, privately. It costs a part of the budget, once."),
      choice("unknown", "Nobody can list them. Every answer then also hides which items exist, and needs a delta."),
    ),
  );
  row.addEventListener("change", () => {
    const chosen = row.querySelector(`input[name="${kind}"]:checked`).value;
    fileField.hidden = chosen !== "file";
    const delta = element("describe-delta");
    if (chosen !== "file" && stated(delta.value) === 0 && !delta.disabled) delta.value = "1e-6";
  });
  fileField.hidden = list === "unknown";
  return place === 0 || element("describe-items").childElementCount === 0 ? row : removable(row, "Remove this column", "add-item");
}

function groupRow(column = "", list = "") {
  const place = rows++;
  const [name, values] = [`describe-group-${place}`, `describe-group-list-${place}`];
  const control = columnControl(name, column);
  const text = make("input", { id: values, list: `${values}-files`, value: Array.isArray(list) ? list.join(", ") : list, autocomplete: "off", "aria-describedby": `${values}-hint` });
  control.addEventListener("input", () => { if (text.value === "") text.value = likelyFile(control.value); });
  return removable(
    make("div", { class: "repeated columns", "data-row": place }, field(name, "Column with the groups", control), field(values, "The groups, which are public", text, "A file, or the names with commas: DE, FR, IT"), make("datalist", { id: `${values}-files` }, ...files())),
    "Remove this group column",
    "add-group",
  );
}

function filterRow(name = "", condition = "") {
  const place = rows++;
  return removable(
    make(
      "div",
      { class: "repeated columns", "data-row": place },
      field(`describe-filter-name-${place}`, "Name", make("input", { id: `describe-filter-name-${place}`, value: name, autocomplete: "off", placeholder: "adults" })),
      field(`describe-filter-condition-${place}`, "Condition in SQL", make("input", { id: `describe-filter-condition-${place}`, value: condition, autocomplete: "off", placeholder: "age >= 18" })),
    ),
    "Remove this filter",
    "add-filter",
  );
}

// Fill the form; facts that were fixed by the first description cannot be changed.
function fill({ again }) {
  const { dataset } = state;
  const facts = (again && statedFacts(dataset)) || {};
  rows = 0;
  // What was typed for another data set is no fact of this one.
  element("describe").reset();
  element("describe-intro").textContent = again
    ? "These facts can be changed. Who is protected, and the total budget, are fixed."
    : "First say what is true and public about this data. Nothing is counted for this form: only the names of the columns are read.";
  show("describe-fixed", !again);
  show("describe-periods", !again);
  show("describe-protects-field", !again);
  show("describe-cancel", again);
  element("describe-person-place").replaceChildren(columnControl("describe-person", facts.person, { described: "describe-person-hint describe-person-error" }));
  element("describe-time-place").replaceChildren(columnControl("describe-time", facts.time, { optional: true, described: "describe-time-error" }));
  element("describe-items").replaceChildren();
  for (const [column, list] of Object.entries(facts.items ?? { "": null })) element("describe-items").append(itemRow(column, list));
  element("describe-groups").replaceChildren(...Object.entries(facts.groups ?? {}).map(([column, list]) => groupRow(column, list)));
  element("describe-filters").replaceChildren(...Object.entries(facts.filters ?? {}).map(([name, condition]) => filterRow(name, condition)));
  element("describe-people").value = facts.people ?? "";
  element("describe-max_items_per_person").value = facts.max_items_per_person ?? "";
  element("describe-max_groups_per_person").value = facts.max_groups_per_person ?? 1;
  clearErrors(FIELDS);
  say("describe-status", "");
}

// What the form states, or null after saying beside the fields what is wrong.
function read({ again }) {
  const wrong = {};
  const value = (id) => element(id).value.trim();
  const number = (name, { above = 0, whole: integer = false, atLeast = null } = {}) => {
    const given = stated(value(`describe-${name}`));
    const fits = Number.isFinite(given) && (atLeast === null ? given > above : given >= atLeast) && (!integer || Number.isInteger(given));
    if (!fits) wrong[`describe-${name}`] = integer ? "This must be a whole number from 1 on." : atLeast === null ? `This must be a number above ${above}, such as 2.` : "This must be 0 or a small number, such as 1e-6.";
    return given;
  };
  const optional = (name, rule) => (value(`describe-${name}`) === "" ? undefined : number(name, rule));
  const body = { items: {} };
  let discover = null;
  for (const row of element("describe-items").children) {
    const place = row.dataset.row;
    const [name, file] = [value(`describe-item-${place}`), value(`describe-file-${place}`)];
    const kind = row.querySelector("input:checked").value;
    if (name === "") wrong[`describe-item-${place}`] = "Choose the column that holds the items.";
    else if (kind === "file" && file === "") wrong[`describe-file-${place}`] = "Name the file with the list, or choose another way below.";
    if (kind === "discover") discover ??= name;
    body.items[name] = kind === "file" ? file : "unknown";
  }
  const groups = {};
  for (const row of element("describe-groups").children) {
    const [name, list] = [value(`describe-group-${row.dataset.row}`), value(`describe-group-list-${row.dataset.row}`)];
    if (name === "") wrong[`describe-group-${row.dataset.row}`] = "Choose the column that holds the groups.";
    if (list === "") wrong[`describe-group-list-${row.dataset.row}`] = "Name a file, or type the groups with commas.";
    else groups[name] = list.includes(",") ? list.split(",").map((each) => each.trim()).filter(Boolean) : list;
  }
  const filters = {};
  for (const row of element("describe-filters").children) {
    const [name, condition] = [value(`describe-filter-name-${row.dataset.row}`), value(`describe-filter-condition-${row.dataset.row}`)];
    if (name === "") wrong[`describe-filter-name-${row.dataset.row}`] = "Give the filter a name.";
    if (condition === "") wrong[`describe-filter-condition-${row.dataset.row}`] = "State the condition, such as age >= 18.";
    else filters[name] = condition;
  }
  Object.assign(body, { groups, filters, people: optional("people", { whole: true }), max_items_per_person: optional("max_items_per_person", { whole: true }), max_groups_per_person: number("max_groups_per_person", { whole: true }) });
  if (!again) {
    Object.assign(body, { person: value("describe-person"), epsilon: number("epsilon"), delta: number("delta", { atLeast: 0 }), protects: value("describe-protects") || "one person" });
    if (body.person === "") wrong["describe-person"] = "Choose the column that says who a row is about.";
    else if (body.person in body.items) wrong["describe-person"] = "This column cannot hold both the people and the items.";
    if (value("describe-every") !== "") {
      Object.assign(body, { time: value("describe-time"), every: value("describe-every"), lifetime: optional("lifetime") });
      if (body.time === "") wrong["describe-time"] = "Periods need the column with the time.";
    } else if (value("describe-time") !== "") wrong["describe-every"] = "Choose day, week or month, or no column with the time.";
  } else {
    const { person, epsilon, delta, every, lifetime, protects, time } = statedFacts(state.dataset);
    Object.assign(body, { person, epsilon, delta, every, lifetime, protects, time });
  }
  clearErrors([...element("describe").querySelectorAll("[aria-invalid]")].map(({ id }) => id));
  clearErrors(FIELDS);
  setErrors(wrong);
  return Object.keys(wrong).length === 0 ? { body, discover } : null;
}

const LISTS = { items: "describe-file-", item: "describe-file-", domain: "describe-file-", groups: "describe-group-list-" };
const REPEATED = { ...LISTS, where: "describe-filter-condition-", filters: "describe-filter-condition-" };

// Of the rows of fields, the field that an error is about: the one whose file or condition the error names, else the first of its kind.
function placeOf({ field, message }) {
  const kinds = field ? [REPEATED[field]].filter(Boolean) : Object.values(LISTS);
  const fields = [...element("describe").querySelectorAll("input[id]")].filter(({ id }) => kinds.some((kind) => id.startsWith(kind)));
  const named = fields.find(({ value }) => value !== "" && message.includes(value.split("/").pop()));
  return (named ?? (field ? fields[0] : undefined))?.id;
}

async function describe(event) {
  event.preventDefault();
  const again = state.dataset.described;
  const given = read({ again });
  if (given === null) return;
  say("describe-status", "");
  element("describe-button").disabled = true;
  try {
    const dataset = await call("POST", path("describe"), { body: given.body });
    state.datasets = state.datasets.map((each) => (each.name === dataset.name ? dataset : each));
    state.dataset = dataset;
    tell("dataset");
    if (given.discover !== null) {
      element("item").value = given.discover;
      openDiscovery();
    } else focusOn("item");
  } catch (error) {
    const place = placeOf(error);
    if (place !== undefined) setErrors({ [place]: sentence(error) });
    else report(error, "describe-status", { focus: true, prefix: "describe-" });
  } finally {
    element("describe-button").disabled = false;
  }
}

function openDiscovery() {
  show("discover", true);
  element("open-discover").setAttribute("aria-expanded", "true");
  focusOn("discover-epsilon");
}

async function discover(event) {
  event.preventDefault();
  const body = { item: element("item").value };
  if (!element("period-field").hidden) body.period = element("period").value.trim() || null;
  clearErrors(DISCOVERY);
  for (const id of DISCOVERY) {
    const text = element(id).value.trim();
    if (text === "" && id === "discover-at_least") continue;
    const number = stated(text);
    if (!(number > 0 && Number.isFinite(number))) {
      setError(id, "This must be a number above 0.");
      focusOn(id);
      return;
    }
    body[id.slice("discover-".length)] = number;
  }
  const before = pending();
  // The same request after a lost connection has the same key, so that nothing is charged twice.
  const same = before?.kind === "discover" && before.dataset === state.dataset.name && JSON.stringify(before.body) === JSON.stringify(body);
  const key = same ? before.key : newKey();
  keepPending({ kind: "discover", dataset: state.dataset.name, body, key });
  element("discover-button").disabled = true;
  say("discover-status", "Counting. This may take a while …");
  try {
    const found = await call("POST", path("discover"), { body, key });
    clearPending();
    element("discover-agree").checked = false;
    show("discover", false);
    element("open-discover").setAttribute("aria-expanded", "false");
    say("discover-status", "");
    focusOn("item");
    tell("reload");
    const cost = `for epsilon ${above(found.guarantee.epsilon)}`;
    say("question-status", found.items
      ? `The list was published: ${count(found.items, "item")}, in ${found.file}, ${cost}. It is now the list of items.`
      : `No item has enough people to be listed, ${cost}. The list of items stays as it was.`, found.items ? "good" : "bad");
  } catch (error) {
    if (!isOpen(error)) clearPending();
    say("discover-status", isOpen(error) ? `${sentence(error)} Press the button again: the same key is used, and nothing is charged twice.` : "", "bad");
    if (!isOpen(error)) report(error, "discover-status", { focus: true, prefix: "discover-" });
    element("discover-button").disabled = !element("discover-agree").checked;
  }
}

export function startDescribe() {
  on("dataset", () => {
    const { described } = state.dataset;
    show("describe", !described);
    show("change-facts", described && alone());
    if (!described) fill({ again: false });
  });
  on("another", () => {
    say("question-status", "");
    element("discover").reset();
    element("discover-button").disabled = true;
  });
  element("change-facts").addEventListener("click", () => {
    fill({ again: true });
    show("describe", true);
    show("change-facts", false);
    focusOn(`describe-item-${element("describe-items").firstElementChild.dataset.row}`);
  });
  element("describe-cancel").addEventListener("click", () => {
    show("describe", false);
    show("change-facts", true);
    element("change-facts").focus();
  });
  element("add-item").addEventListener("click", () => append("describe-items", itemRow()));
  element("add-group").addEventListener("click", () => append("describe-groups", groupRow()));
  element("add-filter").addEventListener("click", () => append("describe-filters", filterRow()));
  element("describe").addEventListener("submit", describe);
  element("open-discover").addEventListener("click", () => {
    if (element("discover").hidden) return openDiscovery();
    show("discover", false);
    return element("open-discover").setAttribute("aria-expanded", "false");
  });
  element("discover-agree").addEventListener("change", () => { element("discover-button").disabled = !element("discover-agree").checked; });
  element("discover").addEventListener("submit", discover);
}
