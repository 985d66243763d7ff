// The page: a private position, what is sent about it, what comes back, and what it costs over many trials.

import { BudgetExceeded, Client, Ledger, ask } from "./dpselect.js";
import { drawCosts, drawStrip } from "./drawing.js";

// So many signals with the epsilon that the page starts with.
const SIGNALS = 25;
const BATCH = 100;
const element = (name) => document.getElementById(name);

class Trials {
  constructor(answers) {
    this.answers = answers;
    this.count = 0;
    this.sums = answers.map(() => [0, 0]);
  }

  // The same noise serves every k, so that the curves can be compared.
  add(noise) {
    this.count += 1;
    this.answers.forEach(({ offsets }, place) => {
      const cost = Math.min(...offsets.map((offset) => Math.abs(noise + offset)));
      this.sums[place][0] += cost;
      this.sums[place][1] += cost * cost;
    });
  }

  means() {
    return this.sums.map(([sum, squares]) => {
      const mean = sum / this.count;
      return { mean, error: Math.sqrt(Math.max(0, squares / this.count - mean * mean) / this.count) };
    });
  }
}

const state = { clients: new Map(), signal: null, targets: [], results: [], chosen: null };

const position = () => Number(element("position").value);
const epsilon = () => state.offer.epsilons[Number(element("epsilon").value)];
const k = () => Number(element("k").value);
const address = (count) => `/v1/multiselect/${encodeURIComponent(state.offer.name)}?k=${count}&epsilon=${epsilon()}`;
// A hundredth of a hundredth of the map is the last digit.
const length = (value, more = 0) => `${value.toFixed(Math.min(20, state.digits + more))} ${state.offer.unit}`;

// One client for each epsilon, all on one ledger; each remembers what it sent.
function client() {
  if (!state.clients.has(epsilon())) {
    state.clients.set(epsilon(), new Client({ epsilon: epsilon(), grid: state.offer.grid, ledger: state.ledger }));
  }
  return state.clients.get(epsilon());
}

function forget() {
  Object.assign(state, { signal: null, targets: [], results: [], chosen: null });
  for (const name of ["kept-noise", "kept-choice", "kept-distance"]) element(name).textContent = "–";
}

function show() {
  element("position-shown").textContent = `at ${length(position())}`;
  element("epsilon-shown").textContent = `${epsilon()} per ${state.offer.unit}`;
  element("k-shown").textContent = `${k()}`;
  element("kept-position").textContent = length(position());
  element("spent").textContent = Number(state.ledger.spent.toPrecision(3)).toString();
  element("budget").textContent = `${state.budget}`;
  element("meter").value = state.ledger.spent / state.budget;
  // Half of all Laplace noise is smaller than ln 2 / epsilon.
  const place = drawStrip(element("strip"), { ...state, position: position(), half: Math.LN2 / epsilon() });
  // A narrow screen shows a part of the map: the one around the user.
  const map = element("strip").parentElement;
  map.scrollLeft = place * map.scrollWidth - map.clientWidth / 2;
  showTrials();
}

function showTrials() {
  const { trials } = state;
  drawCosts(element("costs"), { answers: state.answers, trials, k: k(), unit: state.offer.unit });
  const digits = Math.min(20, state.digits + 1);
  const theory = state.answers[k() - 1].expected_cost;
  const found = trials.count > 1 ? trials.means()[k() - 1] : null;
  const measured = found ? ` ${trials.count.toLocaleString("en")} trials gave ${found.mean.toFixed(digits)} ± ${(1.96 * found.error).toFixed(digits)}.` : "";
  element("trial-text").textContent = `Theory for k = ${k()} and ε = ${epsilon()}: ${length(theory, 1)}.${measured}`;
}

async function settings() {
  const wanted = epsilon();
  const reply = await fetch(address(element("k").max));
  const described = await reply.json();
  if (wanted !== epsilon()) return;
  if (!reply.ok) throw new Error(described.error);
  state.answers = described.answers;
  state.trials = new Trials(described.answers);
  forget();
  show();
}

async function onAsk() {
  element("ask").disabled = true;
  const [from, answers, place, to] = [client(), state.answers[k() - 1], position(), address(k())];
  let sent = null;
  try {
    const before = state.ledger.spent;
    const signal = from.signal(place);
    const again = state.ledger.spent === before;
    sent = `POST ${to}\n${JSON.stringify({ signal })}`;
    const { results } = await ask(to, signal);
    say(again ? "The budget is gone: the earlier signal for this place was sent again, which tells nothing new." : "", false);
    // Whoever moved a slider meanwhile has asked about something else.
    if (place === position() && to === address(k())) {
      const chosen = from.choose(results);
      Object.assign(state, { signal, results, chosen, targets: answers.offsets.map((offset) => signal + offset) });
      element("kept-noise").textContent = length(signal - place);
      element("kept-choice").textContent = `${chosen.item}, at ${length(chosen.position)}`;
      element("kept-distance").textContent = length(Math.abs(chosen.position - place));
    }
  } catch (error) {
    say(error instanceof BudgetExceeded ? "Refused: another signal would tell more than your budget allows. Nothing was sent." : `It failed: ${error.message}`, true);
  } finally {
    // Also when no answer came: the server may have the signal all the same.
    if (sent !== null) element("sent").textContent = sent;
    element("ask").disabled = false;
  }
  show();
}

function say(text, refused) {
  element("status").textContent = text;
  element("status").className = refused ? "refused" : "";
}

// In small batches, so that the picture moves and the page stays responsive.
function onTrials() {
  const { trials } = state;
  const source = client();
  const end = trials.count + 2000;
  element("trials").disabled = true;
  const batch = () => {
    for (let drawn = 0; drawn < BATCH; drawn += 1) trials.add(source.noise());
    if (state.trials === trials) showTrials();
    if (state.trials === trials && trials.count < end) requestAnimationFrame(batch);
    else element("trials").disabled = false;
  };
  batch();
}

async function start() {
  const reply = await fetch("/v1/multiselect");
  [state.offer] = (await reply.json()).catalogues;
  const { epsilons, shown: [low, high], unit, most } = state.offer;
  // The page starts with noise of about a twentieth of the map.
  const far = (each) => Math.abs(Math.log((each * (high - low)) / 20));
  element("epsilon").max = epsilons.length - 1;
  element("epsilon").value = epsilons.indexOf(epsilons.reduce((best, each) => (far(each) < far(best) ? each : best)));
  element("k").max = Math.min(9, most);
  element("k").value = Math.min(9, state.offer.k);
  Object.assign(element("position"), { min: low, max: high, value: low + 0.374 * (high - low) });
  for (const name of document.querySelectorAll(".unit-name")) name.textContent = unit;
  state.digits = Math.max(0, 2 - Math.floor(Math.log10((high - low) / 100)));
  state.budget = SIGNALS * epsilon();
  state.ledger = new Ledger(state.budget);
  await settings();
  element("position").addEventListener("input", () => { forget(); show(); });
  element("k").addEventListener("input", () => { forget(); show(); });
  element("epsilon").addEventListener("input", () => settings().catch((error) => say(`It failed: ${error.message}`, true)));
  element("ask").addEventListener("click", onAsk);
  element("trials").addEventListener("click", onTrials);
  element("ask").disabled = false;
  element("trials").disabled = false;
}

start().catch((error) => say(`The page could not start: ${error.message}`, true));
