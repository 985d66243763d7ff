// Step 6: what was released before: one's own releases, and for curators everybody's.

import { guaranteeBox, showRelease } from "./answer.js";
import { call, sentence } from "./call.js";
import { above, element, make, say, show } from "./elements.js";
import { downloads } from "./files.js";
import { alone, on, path, state } from "./state.js";

const when = (time) => new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

// What was asked, as the ledger notes it: "film by country".
function titleOf(question, k) {
  const text = question && k ? `Top ${k} of ${question}` : question;
  return text && text[0].toUpperCase() + text.slice(1);
}

function entry({ key, analyst, time, purpose, dataset, guarantee, parameters, question, answered, looked, release, words }) {
  const tags = [];
  if (looked) tags.push(make("span", { class: "tag warn" }, "parameters chosen after looking"));
  if (!key) tags.push(make("span", { class: "tag" }, "recorded outside of this desk"));
  else if (!answered) tags.push(make("span", { class: "tag bad" }, "charged, not answered"));
  const title = titleOf(question, parameters.k) || purpose || "Release";
  const facts = [when(time), `epsilon ${above(guarantee.epsilon)}${guarantee.delta ? `, delta ${above(guarantee.delta)}` : ""}`];
  if (element("everyone").checked && !alone() && analyst) facts.push(analyst);
  if (dataset && dataset !== state.dataset.name) facts.push(`data set ${dataset}`);
  if (purpose && purpose !== title) facts.push(purpose);
  const head = make("span", { class: "history-head" }, make("span", {}, title), make("span", { class: "hint" }, facts.join(" · ")), ...tags);
  if (!release) return make("li", {}, head);
  const details = make("details", {}, make("summary", {}, head));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const table = make("div");
    const full = { ...release, words };
    details.append(table, guaranteeBox(full, looked), downloads(full, { dataset: dataset || state.dataset.name, title, purpose, time, key, looked, analyst }));
    showRelease(table, full, { heading: "h4" });
  });
  return make("li", {}, details);
}

async function load() {
  const { dataset } = state;
  show("everyone-choice", !alone() && state.session.scopes.includes("curate"));
  if (!dataset.described) return;
  try {
    const everyone = alone() || element("everyone").checked;
    const entries = await call("GET", path(`releases${everyone ? "?everyone=true" : ""}`));
    if (dataset.name !== state.dataset.name) return;
    say("history-status", "");
    element("history").replaceChildren(...(entries.length > 0 ? entries.map(entry) : [make("li", { class: "hint" }, "Nothing was released yet.")]));
  } catch (error) {
    say("history-status", sentence(error), "bad");
  }
}

export function startHistory() {
  element("everyone").addEventListener("change", load);
  on("dataset", load);
}
