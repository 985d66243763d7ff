// The page: who asks, which data set, and the steps of the work in their order.

import { startBudget } from "./budget.js";
import { Refused, call, findToken, forgetToken, keepToken, sentence } from "./call.js";
import { startDescribe } from "./describe.js";
import { below, brief, element, make, options, say, setError, show, whole } from "./elements.js";
import { startEpsilon } from "./epsilon.js";
import { startHistory } from "./history.js";
import { startQuestion } from "./question.js";
import { startRelease } from "./release.js";
import { alone, on, state, tell } from "./state.js";

const LATER = ["step-question", "step-epsilon", "step-budget", "step-preview", "step-release", "step-history"];

function signIn(message = "") {
  forgetToken();
  for (const id of ["step-data", ...LATER]) show(id, false);
  show("sign-in", true);
  setError("token", message);
  element("token").value = "";
  element("token").focus();
}

// Start over with the token that this tab has.
async function enter() {
  say("page-status", "");
  if (!findToken()) {
    signIn();
    return;
  }
  try {
    state.session = await call("GET", "/v1/session");
    show("sign-in", false);
    element("session").textContent = alone()
      ? "You work alone: this page talks to a desk on your own machine, and nobody else can reach it."
      : `You are ${state.session.analyst}. You can ask, under a budget; you never see the rows.`;
    element("version").textContent = `dpselect ${state.session.version}`;
    await load();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) signIn(sentence(error));
    else fail(error);
  }
}

function fail(error) {
  say("page-status", sentence(error), "bad");
  element("page-status").append(" ", make("button", { type: "button", class: "quiet small-button", click: enter }, "Try again"));
}

function withoutRows() {
  const { offered } = state.session;
  const why = offered.length > 0 ? `There are no rows about people in ${offered.join(", ")}: they need two columns, of people and of items.` : "No data was named.";
  return `${why} Start the desk with files: dpselect desk views.parquet films.csv`;
}

async function load() {
  state.datasets = await call("GET", "/v1/datasets");
  show("step-data", true);
  if (state.datasets.length === 0) {
    setError("dataset", alone() ? withoutRows() : "Your token gives access to no data set. Ask whoever runs this desk.");
    return;
  }
  const lost = state.dataset !== null && !state.datasets.some(({ name }) => name === state.dataset.name) ? state.dataset.name : null;
  list();
  choose();
  setError("dataset", lost === null ? "" : `The desk does not offer “${lost}” any more.`);
  if (lost !== null) element("dataset").focus();
}

function list() {
  const names = state.datasets.map(({ name, described }) => [name, described ? name : `${name} (not described yet)`]);
  options(element("dataset"), names, state.dataset?.name ?? element("dataset").value);
}

function choose() {
  const name = element("dataset").value;
  const another = state.dataset?.name !== name;
  state.dataset = state.datasets.find((each) => each.name === name);
  if (another) {
    state.estimate = null;
    tell("another");
  }
  tell("dataset");
}

function showFacts() {
  const { dataset } = state;
  list();
  for (const id of LATER) show(id, dataset.described);
  const file = dataset.source ? [["File", dataset.source.path]] : [];
  const columns = dataset.schema ? [["Its columns", dataset.schema.join(", ")]] : [];
  if (!dataset.described) {
    tellFacts([...file, ...columns]);
    return;
  }
  const { people, max_items_per_person: most } = dataset.questions;
  const { budget } = dataset;
  tellFacts([
    ...file,
    ["Protected", dataset.protects],
    ["Can be asked about", dataset.columns.join(", ")],
    ["Privacy budget", `epsilon ${brief(budget.epsilon)}${budget.delta ? `, delta ${brief(budget.delta)}` : ""}${budget.every ? ` for each ${budget.every}` : ""}${budget.lifetime ? `, ${brief(budget.lifetime)} for all together` : ""}; cannot be raised`],
    ...(people ? [["People (public number)", whole(people)]] : []),
    ...(most ? [["Items per person", `at most ${most}`]] : []),
  ]);
}

function tellFacts(facts) {
  element("dataset-facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function startTheme() {
  const choice = element("theme");
  choice.value = document.documentElement.dataset.theme ?? "";
  choice.addEventListener("change", () => {
    if (choice.value) document.documentElement.dataset.theme = choice.value;
    else delete document.documentElement.dataset.theme;
    try {
      if (choice.value) localStorage.setItem("dpselect-theme", choice.value);
      else localStorage.removeItem("dpselect-theme");
    } catch {
      // The choice then lasts as long as the page.
    }
  });
}

function start() {
  startTheme();
  on("dataset", showFacts);
  startQuestion();
  startDescribe();
  startEpsilon();
  startBudget();
  startRelease();
  startHistory();
  on("reload", () => load().catch(fail));
  on("unauthorized", () => signIn("The token is not accepted any more: it has expired or was revoked. Enter a new one to go on."));
  // A message about a field goes when the field is changed.
  document.addEventListener("input", ({ target }) => { if (target.id) setError(target.id, ""); });
  element("dataset").addEventListener("change", choose);
  element("sign-in").addEventListener("submit", (event) => {
    event.preventDefault();
    // The whole address that the desk printed will do.
    const token = element("token").value.trim().split("token=").pop();
    if (token === "") {
      setError("token", "Paste the token that you were given.");
      return;
    }
    keepToken(token);
    enter().then(() => { if (element("sign-in").hidden) element("dataset").focus(); });
  });
  addEventListener("hashchange", () => { if (location.hash.includes("token=")) enter(); });
  enter();
}

start();
