// The same question as a command line, in Python and over HTTP, to copy.

import { copyText, make } from "./elements.js";
import { alone, state, statedFacts } from "./state.js";

const shell = (text) => (/^[\w./:=@%+-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`);
const python = (value) => (value === true ? "True" : value === false ? "False" : JSON.stringify(value));

// What the command line and Python need beyond the question; null if this desk does not tell where the rows are.
function placeOf(dataset, question) {
  const facts = statedFacts(dataset);
  return (
    facts && {
      source: facts.path,
      person: facts.person,
      list: facts.items[question.item],
      groups: question.by ? facts.groups[question.by] : null,
      condition: question.filter ? facts.filters[question.filter] : null,
      time: question.period ? facts.time : null,
      ledger: facts.ledger,
      account: facts.account,
      purpose: [question.purpose, dataset.looked ? "parameters chosen after looking at the rows" : ""].filter(Boolean).join("; "),
    }
  );
}

function commandLine(dataset, question, place, once) {
  const { max_items_per_person: most, max_groups_per_person: groups } = dataset.questions;
  const parts = [`dpselect top ${shell(place.source)}`];
  const option = (name, value) => value !== null && value !== undefined && value !== "" && parts.push(`--${name} ${shell(String(value))}`);
  option("item", question.item);
  option("person", place.person);
  parts.push(`-k ${question.k}`);
  option("epsilon", question.epsilon);
  if (question.delta) option("delta", question.delta);
  option("domain", place.list);
  if (question.ordered) parts.push("--ordered");
  if (question.aim !== "most") option("aim", question.aim);
  option("values", question.values);
  option("where", place.condition);
  if (question.by) {
    option("by", question.by);
    option("groups", place.groups);
    if (groups > 1) option("max-groups-per-person", groups);
  }
  option("time", place.time);
  option("period", question.period);
  option("max-items-per-person", most);
  if (dataset.protects !== "one person") option("protects", dataset.protects);
  option("ledger", place.ledger);
  option("dataset", place.account);
  option("purpose", place.purpose);
  option("once", once);
  return parts.join(" \\\n    ");
}

function inPython(dataset, question, place, once) {
  const { max_items_per_person: most, max_groups_per_person: groups } = dataset.questions;
  const given = [
    ["item", question.item],
    ["person", place.person],
    ["k", question.k],
    ["epsilon", question.epsilon],
    ["delta", question.delta || null],
    ["domain", place.list === "unknown" ? undefined : place.list],
    ["ordered", question.ordered || null],
    ["aim", question.aim === "most" ? null : question.aim],
    ["values", question.values],
    ["where", place.condition],
    ["by", question.by],
    ["groups", place.groups],
    ["max_groups_per_person", question.by && groups > 1 ? groups : null],
    ["time", place.time],
    ["period", question.period],
    ["max_items_per_person", most ?? null],
    ["protects", dataset.protects === "one person" ? null : dataset.protects],
    ["ledger", place.ledger],
    ["dataset", place.account],
    ["purpose", place.purpose || null],
    ["once", once],
  ];
  const lines = given.filter(([, value]) => value !== null).map(([name, value]) => `    ${name}=${value === undefined ? "dps.UNKNOWN" : python(value)},`);
  return `import dpselect as dps\n\nrelease = dps.top(\n    ${python(place.source)},\n${lines.join("\n")}\n)\nprint(release)`;
}

function overHttp(dataset, question, key) {
  return [
    `curl -X POST ${location.origin}/v1/datasets/${encodeURIComponent(dataset.name)}/releases`,
    '-H "Authorization: Bearer $DPSELECT_TOKEN"',
    `-H "Idempotency-Key: ${key ?? "A-NEW-KEY"}"`,
    '-H "Content-Type: application/json"',
    `-d ${shell(JSON.stringify(question))}`,
  ].join(" \\\n    ");
}

function block(id, title, note, text) {
  const shown = make("pre", { id, tabindex: "0" }, text);
  const button = make("button", { type: "button", class: "quiet small-button", "aria-label": `Copy: ${title}` }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(text, shown)) ? "Copied" : "Select it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return [make("h3", {}, title), make("p", { class: "hint" }, note), make("div", { class: "copy" }, shown, button)];
}

// `key` is that of the answer on the page, if it answers this question.
export function showCommands(place, dataset, question, key) {
  const where = placeOf(dataset, question);
  const again = key === null ? "Put your own word for the key: a key is answered once, and charged once." : "With this key it returns the answer above and costs nothing more.";
  const blocks = [];
  if (where !== null) {
    const note = `Run it in the folder of this desk. ${key === null ? "It is a new release, charged to the same budget." : again}`;
    const once = key === null ? null : `${state.session.analyst}:${key}`;
    blocks.push(...block("command-line", "Command line", note, commandLine(dataset, question, where, once)));
    blocks.push(...block("command-python", "Python", note, inPython(dataset, question, where, once)));
  }
  blocks.push(...block("command-http", "HTTP", `Set DPSELECT_TOKEN first, to ${alone() ? "what follows #token= in the address that the desk printed" : "your token"}. ${again}`, overHttp(dataset, question, key)));
  if (where === null) blocks.push(make("p", { class: "hint" }, "This desk is shared: the rows stay where they are, and questions go over HTTP only."));
  place.replaceChildren(...blocks);
}
