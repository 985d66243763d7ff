// The page: a private position, what is sent about it, what comes back, and what it costs over many trials.

import { BudgetExceeded, Client, Ledger, ask } from "./dpselect.js";
import { drawCosts, drawStrip } from "./drawing.js";

const BUDGET = 5;
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

const state = { clients: new Map(), ledger: new Ledger(BUDGET), signal: null, targets: [], results: [], chosen: null };

const position = () => Number(element("position").value);
const epsilon = () => state.offer.epsilons[Number(element("epsilon").value)];
const k = () => Number(element("k").value);
const kilometres = (value, digits = 2) => `${value.toFixed(digits)} ${state.offer.unit}`;

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
  element("position-shown").textContent = `at ${kilometres(position())}`;
  element("epsilon-shown").textContent = `${epsilon()} per ${state.offer.unit}`;
  element("k-shown").textContent = `${k()}`;
  element("kept-position").textContent = kilometres(position());
  element("spent").textContent = Number(state.ledger.spent.toPrecision(3)).toString();
  element("budget").textContent = `${BUDGET}`;
  element("meter").value = state.ledger.spent / BUDGET;
  // Half of all Laplace noise is smaller than ln 2 / epsilon.
  drawStrip(element("strip"), { ...state, position: position(), half: Math.LN2 / epsilon() });
  showTrials();
}

function showTrials() {
  const { trials } = state;
  drawCosts(element("costs"), { answers: state.answers, trials, k: k(), unit: state.offer.unit });
  const theory = state.answers[k() - 1].expected_cost;
  const found = trials.count > 1 ? trials.means()[k() - 1] : null;
  const measured = found ? ` ${trials.count.toLocaleString("en")} trials gave ${found.mean.toFixed(3)} ± ${(1.96 * found.error).toFixed(3)}.` : "";
  element("trial-text").textContent = `Theory for k = ${k()} and ε = ${epsilon()}: ${kilometres(theory, 3)}.${measured}`;
}

async function settings() {
  const wanted = epsilon();
  const reply = await fetch(`/v1/multiselect/${state.offer.name}?k=${element("k").max}&epsilon=${wanted}`);
  const described = await reply.json();
  if (wanted !== epsilon()) return;
  state.answers = described.answers;
  state.trials = new Trials(described.answers);
  forget();
  show();
}

async function onAsk() {
  element("ask").disabled = true;
  const [from, answers] = [client(), state.answers[k() - 1]];
  try {
    const before = state.ledger.spent;
    const signal = from.signal(position());
    const again = state.ledger.spent === before;
    const address = `/v1/multiselect/${state.offer.name}?k=${k()}&epsilon=${epsilon()}`;
    const { body, results } = await ask(address, signal);
    const chosen = from.choose(results);
    Object.assign(state, { signal, results, chosen, targets: answers.offsets.map((offset) => signal + offset) });
    element("sent").textContent = `POST ${address}\n${body}`;
    element("kept-noise").textContent = kilometres(signal - position());
    element("kept-choice").textContent = `${chosen.item}, at ${kilometres(chosen.position)}`;
    element("kept-distance").textContent = kilometres(Math.abs(chosen.position - position()));
    say(again ? "The budget is gone: the earlier signal for this place was sent again, which tells nothing new." : "", false);
  } catch (error) {
    say(error instanceof BudgetExceeded ? "Refused: another signal would tell more than your budget allows. Nothing was sent." : `It failed: ${error.message}`, true);
  } finally {
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
  element("epsilon").max = state.offer.epsilons.length - 1;
  element("epsilon").value = Math.max(0, state.offer.epsilons.indexOf(0.2));
  element("k").max = Math.min(9, state.offer.most);
  element("k").value = Math.min(5, state.offer.most);
  await settings();
  element("position").addEventListener("input", () => { forget(); show(); });
  element("k").addEventListener("input", () => { forget(); show(); });
  element("epsilon").addEventListener("input", settings);
  element("ask").addEventListener("click", onAsk);
  element("trials").addEventListener("click", onTrials);
  element("ask").disabled = false;
  element("trials").disabled = false;
}

start().catch((error) => say(`The page could not start: ${error.message}`, true));
