// Steps 4 and 5: a preview on generated data, then the release: confirmed, asked under a key, and shown.

import { guaranteeBox, questionWords, showRelease } from "./answer.js";
import { call, clearPending, isOpen, keepPending, newKey, pending, sentence } from "./call.js";
import { showCommands } from "./commands.js";
import { above, below, brief, change, element, enable, focusOn, make, say, show } from "./elements.js";
import { refuseCost, report } from "./epsilon.js";
import { downloads } from "./files.js";
import { readQuestion } from "./question.js";
import { alone, on, path, state, tell } from "./state.js";

// Whether a release is under way.
let asking = false;

async function preview() {
  const question = readQuestion({ focus: true });
  if (question === null) return;
  say("preview-status", "");
  element("preview-button").disabled = true;
  try {
    const { release, words } = await call("POST", path("preview"), { body: question });
    const body = make("div");
    element("preview").replaceChildren(
      make("p", {}, make("span", { class: "tag warn" }, "GENERATED DATA"), ` ${words}`),
      body,
    );
    show("preview", true);
    showRelease(body, release);
    element("preview-button").textContent = "Show another preview";
  } catch (error) {
    report(error, "preview-status", { focus: true });
  } finally {
    enable("preview-button");
  }
}

function confirmRelease() {
  const question = readQuestion({ focus: true });
  if (question === null) return;
  const { dataset, estimate } = state;
  const cost = estimate?.cost;
  const rest = cost && Math.abs(cost.epsilon - question.epsilon) < 1e-12 ? cost.remaining : null;
  if (rest !== null && !cost.affordable) {
    refuseCost(cost);
    focusOn(cost.epsilon > rest ? "epsilon" : "delta");
    return;
  }
  const of = rest === null ? "" : ` of the ${below(rest)} that ${rest === 1 ? "is" : "are"} left`;
  const delta = question.delta > 0 ? ` and delta ${above(question.delta)}` : "";
  element("confirm-text").textContent = `${questionWords(question)}: this costs epsilon ${above(question.epsilon)}${of}${delta}, and ${dataset.protects} can change the probability of any answer by ${change(question.epsilon)}${question.delta > 0 ? ", except with a probability of about delta" : ""}.`;
  show("confirm-looked", dataset.looked);
  element("confirm").showModal();
  element("confirm-cancel").focus();
  element("confirm-release").onclick = () => {
    element("confirm").close();
    ask({ kind: "release", dataset: dataset.name, analyst: state.session.analyst, body: question, key: newKey() });
  };
}

// Ask under a key. The key is kept until an answer came, also over a reload of the page.
async function ask(asked) {
  asking = true;
  keepPending(asked);
  show("pending", false);
  element("release-button").disabled = true;
  show("release-progress", true);
  const { answer_after: after } = state.dataset;
  say("release-status", `Asked. ${after > 0 ? `The answer comes after ${brief(after)} seconds or a little later: always at set times, so that the time tells nothing about the rows.` : "Waiting for the answer."}`);
  try {
    const release = await call("POST", `/v1/datasets/${encodeURIComponent(asked.dataset)}/releases`, { body: asked.body, key: asked.key });
    clearPending();
    say("release-status", "");
    state.released = true;
    state.answered = { key: asked.key, question: asked.body, dataset: asked.dataset };
    showAnswer(release, asked);
    tell("reload");
  } catch (error) {
    if (isOpen(error)) {
      say("release-status", "");
      showPending(sentence(error));
      focusOn("retry");
    } else {
      clearPending();
      report(error, "release-status", { focus: true });
      say("release-status", sentence(error), "bad");
      tell("reload");
    }
  } finally {
    asking = false;
    show("release-progress", false);
    element("release-button").disabled = pending()?.kind === "release";
  }
}

function showAnswer(release, { dataset, body, key }) {
  const place = element("answer");
  const table = make("div");
  const looked = state.dataset.looked;
  place.replaceChildren(
    make("h3", { class: "answer-title" }, questionWords(body)),
    table,
    guaranteeBox(release, looked),
    downloads(release, { dataset, title: questionWords(body), purpose: body.purpose, time: Date.now(), key, looked, analyst: state.session.analyst }),
  );
  show("answer", true);
  showRelease(table, release, { heading: "h4" });
  place.focus();
  place.scrollIntoView({ block: "nearest" });
}

function showPending(reason) {
  const asked = pending();
  // A key belongs to the analyst who asked.
  const shown = asked?.kind === "release" && asked.analyst === state.session.analyst;
  show("pending", shown);
  element("release-button").disabled = shown;
  if (!shown) return;
  element("pending-text").textContent = `${reason} The question to “${asked.dataset}” was: “${questionWords(asked.body)}”, epsilon ${above(asked.body.epsilon)}. The page keeps its key: with the same key it is answered once, and nothing is charged twice.`;
}

function retry() {
  const asked = pending();
  if (asked !== null) ask(asked);
}

function setAside() {
  clearPending();
  show("pending", false);
  enable("release-button");
  say("release-status", "Set aside. If it was answered after all, it is in the history below.");
  tell("reload");
}

function refreshCommands() {
  if (!element("commands").open || !state.dataset?.described) return;
  const question = readQuestion({ quiet: true });
  if (question === null) return;
  const { answered } = state;
  const same = answered !== null && answered.dataset === state.dataset.name && JSON.stringify(answered.question) === JSON.stringify(question);
  showCommands(element("commands-place"), state.dataset, question, same ? answered.key : null);
}

export function startRelease() {
  element("preview-button").addEventListener("click", preview);
  element("release-button").addEventListener("click", confirmRelease);
  element("confirm-cancel").addEventListener("click", () => element("confirm").close());
  element("confirm").addEventListener("close", () => element("release-button").focus());
  element("retry").addEventListener("click", retry);
  element("set-aside").addEventListener("click", setAside);
  element("commands").addEventListener("toggle", refreshCommands);
  element("purpose").addEventListener("input", refreshCommands);
  for (const name of ["dataset", "estimate"]) on(name, refreshCommands);
  on("another", () => {
    for (const id of ["preview", "answer"]) show(id, false);
    element("preview-button").textContent = "Show a preview";
    say("release-status", "");
  });
  on("question", () => show("preview", false));
  on("dataset", () => { if (!alone()) element("commands-title").textContent = "The same question over HTTP"; });
  on("dataset", () => { if (!asking) showPending("The last release got no answer."); });
}
