// Step 3: epsilon, its curve, and the epsilon that a wanted accuracy needs.

import { Refused, call, sentence } from "./call.js";
import { curveTable, drawCurve, shownPoints, valueAt } from "./charts.js";
import { above, asSentence, below, brief, change, clearErrors, element, enable, focusOn, make, options, say, setError, show, stated, whole } from "./elements.js";
import { FIELDS, readQuestion } from "./question.js";
import { alone, on, path, state, tell } from "./state.js";

const LARGEST_FILE = 1_000_000;
const PAUSE = 350;
const EXPECTED = ["lead", "accuracy", "like"];

// The curve on the page: {curve, source: "public" | "like" | "real", of: the question without epsilon}.
let shown = null;
let estimating = new AbortController();
let computing = null;
let timer = 0;
let counts = null;
const NO_FILE = "Choose a CSV file first.";
// Why there are no counts.
let missing = NO_FILE;
let needed = null;
let startedWith = null;

const expected = () => document.querySelector('input[name="expect"]:checked').value;
const epsilon = () => stated(element("epsilon").value);
const unknownItems = () => state.dataset?.questions?.items[element("item").value]?.source === "unknown";
// Whether every item of the list comes out, so that there is nothing to get wrong.
function allComeOut() {
  const k = stated(element("k").value);
  return k === state.dataset?.questions?.items[element("item").value]?.size && (k === 1 || !element("ordered").checked);
}

// What a curve over epsilon is about.
const about = (question) => JSON.stringify({ ...question, epsilon: 0, purpose: "" });

// What the library calls some fields of the page.
const NAMES = { where: "filter", domain: "item", groups: "by" };

// Say an error beside the field it is about, else at the place given.
export function report(error, place, { focus = false, prefix = "" } = {}) {
  const field = error instanceof Refused ? (error.code === "budget-exceeded" && error.field === null ? "epsilon" : error.field) : null;
  const name = field?.split(/[.[]/)[0];
  const id = [`${prefix}${name}`, `${prefix}${NAMES[name]}`].find((each) => element(`${each}-error`) !== null);
  if (id !== undefined && setError(id, sentence(error))) {
    if (error.code === "budget-exceeded" && id === "epsilon") offerRest(error.details.remaining);
    if (focus) focusOn(id);
    return;
  }
  say(place, sentence(error), "bad");
}

function offerRest(rest) {
  if (!(rest > 0)) return;
  show("use-rest", true);
  element("use-rest").textContent = `Use what is left (${below(rest)})`;
  element("use-rest").onclick = () => setEpsilon(rest);
}

function setEpsilon(value, { focus = true } = {}) {
  element("epsilon").value = `${value}`;
  show("use-rest", false);
  changed();
  if (focus) element("epsilon").focus();
}

function changed() {
  const value = epsilon();
  if (value > 0) element("epsilon-slider").value = Math.log10(value);
  draw();
  tell("epsilon");
}

function draw() {
  const value = epsilon();
  const thumb = value > 0 ? value : 10 ** Number(element("epsilon-slider").value);
  element("epsilon-slider").setAttribute("aria-valuetext", `${brief(thumb)}: ${strength(thumb)} protection`);
  element("epsilon-words").textContent = value > 0
    ? `One person changes the probability of any answer by ${change(value)}: ${strength(value)} protection.`
    : "";
  const hasCurve = shown !== null || !(unknownItems() || allComeOut());
  element("curve").toggleAttribute("hidden", !hasCurve);
  drawCurve(element("curve"), { curve: shown?.curve ?? null, epsilon: value, k: stated(element("k").value) });
  if (shown !== null) element("curve-title").textContent = finding(shown.curve, value);
  else element("curve-title").textContent = hasCurve ? "" : withoutCurve();
  const tag = element("curve-tag");
  tag.className = shown?.source === "real" ? "tag accent" : "tag";
  tag.textContent = shown === null ? "" : { public: "from public facts", like: "from a look-alike", real: "NOT PRIVATE: from the real rows" }[shown.source];
  tag.hidden = shown === null;
}

function withoutCurve() {
  if (unknownItems()) return "Without a list of items there is no curve. The sentence below says what an item needs.";
  return element("with-values").checked
    ? "Every item of the list comes out. Epsilon decides how precise the numbers are: see the preview."
    : "Every item of the list comes out, so the answer tells nothing new. Ask for fewer items, a ranking or numbers.";
}

function finding(curve, value) {
  const k = stated(element("k").value);
  const found = valueAt(shownPoints(curve), value);
  const at = `At epsilon ${brief(value)}`;
  if (found === null) return asSentence(`${curve.value_label}, for each epsilon`);
  // The curve of a lead is that of the worst case: what comes out is at least as good.
  if (curve.kind === "success") return `${at}, ${k === 1 ? "the right item comes" : `exactly the right ${k} come`} out with ${probability(found)}`;
  if (curve.kind === "right") return `${at}, about ${brief(Math.min(k, found), 3)} of ${k} items are right`;
  const who = k === 1 ? "the right item" : element("ordered").checked ? "each chosen item" : "the last chosen item";
  return `${at}, ${who} must lead the next by ${whole(Math.ceil(found))} people${curve.value_label.includes("0.9") ? " to be right 9 times in 10" : ""}`;
}

const strength = (value) => (value <= 1 ? "strong" : value <= 5 ? "moderate" : "weak");
const probability = (value) => (value < 0.005 ? "a probability that may be below 0.005" : `a probability of at least ${value > 0.995 ? 0.995 : below(value, 2)}`);

function present(given, source, question) {
  const curve = withPoint(given);
  shown = curve === null ? null : { curve, source, of: about(question) };
  element("curve-table").replaceChildren(...(curve === null ? [] : [curveTable(curve)]));
  draw();
}

// A curve with the point that was asked about among its points.
function withPoint(curve) {
  if (!curve?.at || curve.at.value === null) return curve;
  const others = curve.points.filter(({ epsilon: each }) => Math.abs(each - curve.at.epsilon) > 1e-6 * each);
  return { ...curve, points: [...others, curve.at].sort((one, other) => one.epsilon - other.epsilon) };
}

// What the form states beyond the question, or null after saying beside the field what is wrong.
function expectations({ accuracy = null, like = false }) {
  clearErrors(EXPECTED);
  const sent = { lead: null, accuracy, like: null };
  if (expected() === "lead") {
    sent.lead = stated(element("lead").value);
    if (!(sent.lead > 0)) {
      setError("lead", "The lead must be a number of people above 0, such as 100.");
      return null;
    }
  }
  if (expected() === "like" && like) {
    sent.like = element("like").value || (counts === null ? null : { counts });
    if (sent.like === null) {
      setError("like", missing);
      return null;
    }
  }
  return sent;
}

// What needs a list of items is not shown without one.
function showWhatIsPossible() {
  const listed = !unknownItems();
  show("expect", listed);
  show("reverse", listed);
  show("look", listed && alone());
}

// Ask for the estimate of the question as it stands: from public facts, after a short pause.
function refresh(pause = PAUSE) {
  clearTimeout(timer);
  timer = setTimeout(estimate, pause);
}

async function estimate() {
  estimating.abort();
  estimating = new AbortController();
  const question = readQuestion();
  if (question === null) return;
  const sent = expectations({});
  const { dataset } = state;
  try {
    const found = await call("POST", path("estimate"), { body: { ...question, ...(sent ?? { lead: null, accuracy: null, like: null }) }, signal: estimating.signal });
    if (dataset !== state.dataset) return;
    state.estimate = found;
    say("estimate-status", "");
    // A curve that took long stays while it is about the same question.
    if (shown === null || shown.source === "public" || shown.of !== about(question)) present(found.curve, "public", question);
    // The curve of leads says the same as the sentence.
    const reach = found.curve?.kind === "lead" ? null : found.words.reach;
    element("estimate-words").replaceChildren(...(reach ? [make("p", {}, reach)] : []));
    if (found.cost.affordable) draw();
    else refuseCost(found.cost);
  } catch (error) {
    if (error.name === "AbortError") return;
    state.estimate = null;
    report(error, "estimate-status");
  }
  tell("estimate");
}

// Say beside the fields what of a cost is not left.
export function refuseCost({ epsilon: cost, remaining, delta, remaining_delta: deltaLeft, period }) {
  if (delta > deltaLeft) setError("delta", `This costs delta ${above(delta)}; ${below(deltaLeft)} is left.`);
  if (remaining <= 0) setError("epsilon", `The budget is spent: you can release nothing more ${period ? `about ${period}` : "from this data"}.`);
  else if (cost > remaining) {
    setError("epsilon", `This costs epsilon ${above(cost)}; only ${below(remaining)} is left.`);
    offerRest(remaining);
  }
}

// Run something that takes long, with a button to cancel it.
async function compute(cancel, action) {
  computing?.abort();
  const own = new AbortController();
  computing = own;
  show(cancel, true);
  try {
    await action(own.signal);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  } finally {
    if (computing === own) {
      computing = null;
      show(cancel, false);
    }
  }
}

async function computeLike() {
  const question = readQuestion({ focus: true });
  const sent = question === null ? null : expectations({ like: true });
  if (sent === null) return;
  show("like-progress", true);
  element("like-button").disabled = true;
  try {
    await compute("like-cancel", async (signal) => {
      const found = await call("POST", path("estimate"), { body: { ...question, ...sent }, signal });
      present(found.curve, "like", question);
    });
  } catch (error) {
    report(error, "estimate-status", { focus: true });
  } finally {
    show("like-progress", false);
    enable("like-button");
  }
}

// The epsilon that is needed is that of the question it was computed for.
function forgetNeeded() {
  needed = null;
  element("needed").textContent = "";
  show("use-needed", false);
}

async function findNeeded() {
  const accuracy = stated(element("accuracy").value);
  const question = readQuestion({ focus: true });
  if (question === null) return;
  if (expected() === "nothing") {
    element("expect-lead").checked = true;
    showExpected();
  }
  const sent = expectations({ accuracy, like: true });
  if (sent === null) return;
  if (!(accuracy > 0 && accuracy < 1)) {
    setError("accuracy", "This must be a number between 0 and 1, such as 0.9.");
    focusOn("accuracy");
    return;
  }
  forgetNeeded();
  const asked = {};
  needed = asked;
  element("needed").textContent = "Computing …";
  try {
    await compute("like-cancel", async (signal) => {
      const found = await call("POST", path("estimate"), { body: { ...question, ...sent }, signal });
      // Whoever changed the question meanwhile has asked about something else.
      if (needed !== asked) return;
      needed = found.needed;
      if (found.curve !== null) present(found.curve, sent.like === null ? "public" : "like", question);
      element("needed").textContent = asSentence(needed?.words ?? "No epsilon on this scale reaches that");
      show("use-needed", Boolean(needed?.epsilon));
      if (needed?.epsilon) element("use-needed").textContent = `Use epsilon ${above(needed.epsilon)}`;
    });
  } catch (error) {
    element("needed").textContent = "";
    report(error, "estimate-status", { focus: true });
  }
  if (element("needed").textContent === "Computing …") element("needed").textContent = "Cancelled.";
}

async function look() {
  const question = readQuestion({ focus: true });
  if (question === null) return;
  say("look-status", "Counting the real rows …");
  element("look-button").disabled = true;
  try {
    await compute("look-cancel", async (signal) => {
      const found = await call("POST", path("look"), { body: question, signal });
      present(found.curve, "real", question);
      say("look-status", found.warning, "warn");
      state.dataset.looked = true;
      tell("estimate");
      element("curve-title").scrollIntoView({ block: "nearest" });
    });
  } catch (error) {
    say("look-status", sentence(error), "bad");
  } finally {
    if (element("look-agree").checked) enable("look-button");
  }
  if (element("look-status").textContent.startsWith("Counting")) say("look-status", "Cancelled. The mark may have been set.");
}

// The numbers in the column `count` of a CSV text.
export function countsOf(text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const cells = (line) => [...line.matchAll(/("(?:[^"]|"")*"|[^,;]*)(?:[,;]|$)/g)].map(([, each]) => each.replace(/^"|"$/g, "").trim());
  const column = cells(lines[0]).findIndex((name) => name.toLowerCase() === "count");
  if (column === -1) throw new Error("The first line must name a column “count”.");
  const numbers = [];
  lines.slice(1).forEach((line, place) => {
    if (line.trim() === "") return;
    const text = cells(line)[column] ?? "";
    const number = text === "" ? NaN : Number(text);
    if (!(number >= 0 && Number.isFinite(number))) throw new Error(`Line ${place + 2}: “${text.slice(0, 30)}” is not a count.`);
    numbers.push(number);
  });
  if (numbers.length < 2) throw new Error("The file must have at least two counts.");
  return numbers;
}

async function readFile() {
  const [file] = element("like-file").files;
  counts = null;
  missing = NO_FILE;
  element("like-file-hint").textContent = "";
  forgetNeeded();
  setError("like", "");
  if (file === undefined) return;
  try {
    if (file.size > LARGEST_FILE) throw new Error(`The file has ${brief(file.size / 1e6)} MB; at most 1 MB is accepted.`);
    counts = countsOf(await file.text());
    element("like-file-hint").textContent = `${whole(counts.length)} counts were read. Only these numbers are sent.`;
  } catch (error) {
    missing = error.message;
    setError("like", missing);
  }
}

function showExpected() {
  const choice = expected();
  show("lead-field", choice === "lead");
  show("like-fields", choice === "like");
  show("like-file-field", element("like").value === "");
  element("reverse-hint").textContent =
    choice === "like" ? "Uses the look-alike chosen above." : "Uses the lead stated above: choose “A lead” and fill it in. A smaller lead needs a larger epsilon.";
  element("accuracy-label").textContent = choice === "like" ? "Wanted share of right items" : "Wanted probability that all are right";
  forgetNeeded();
}

// Start with a quarter of what is left, at most 1, so that several releases are possible.
function startWith({ name, budget, analyst_budget: own }) {
  startedWith = name;
  const left = Math.min(budget.every ? budget.epsilon : budget.remaining, own?.remaining ?? Infinity);
  if (left > 0) setEpsilon(Math.min(1, Number((left / 4).toPrecision(2))), { focus: false });
}

function fill() {
  const { dataset } = state;
  if (dataset.described && startedWith !== dataset.name) startWith(dataset);
  shown = null;
  computing?.abort();
  forgetNeeded();
  if (!dataset.described) return;
  const names = dataset.questions.like ?? [];
  options(element("like"), [...names.map((name) => [name, name]), ["", "a CSV file of mine"]], names[0] ?? "");
  show("like-name-field", names.length > 0);
  element("look-agree").checked = false;
  element("look-button").disabled = true;
  say("look-status", "");
  showWhatIsPossible();
  showExpected();
  refresh(0);
}

export function startEpsilon() {
  element("epsilon-slider").addEventListener("input", () => {
    element("epsilon").value = `${Number((10 ** Number(element("epsilon-slider").value)).toPrecision(2))}`;
    changed();
  });
  element("epsilon").addEventListener("input", changed);
  element("delta").addEventListener("input", () => tell("question"));
  for (const choice of document.querySelectorAll('input[name="expect"]')) {
    choice.addEventListener("change", () => {
      showExpected();
      if (expected() !== "like") {
        shown = null;
        refresh(0);
      }
    });
  }
  element("lead").addEventListener("input", () => { shown = null; forgetNeeded(); refresh(); });
  element("accuracy").addEventListener("input", forgetNeeded);
  element("like").addEventListener("change", showExpected);
  element("like-file").addEventListener("change", readFile);
  element("like-button").addEventListener("click", computeLike);
  element("like-cancel").addEventListener("click", () => computing?.abort());
  element("look-cancel").addEventListener("click", () => computing?.abort());
  element("needed-button").addEventListener("click", findNeeded);
  element("use-needed").addEventListener("click", () => setEpsilon(needed.epsilon));
  element("look-agree").addEventListener("change", () => { element("look-button").disabled = !element("look-agree").checked; });
  element("look-button").addEventListener("click", look);
  new ResizeObserver(() => draw()).observe(element("curve-place"));
  on("dataset", fill);
  on("question", () => { showWhatIsPossible(); forgetNeeded(); draw(); refresh(); });
  on("epsilon", () => refresh());
  on("released", () => refresh(0));
  clearErrors([...FIELDS, ...EXPECTED]);
}
