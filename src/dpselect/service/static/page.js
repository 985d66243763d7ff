// The page: a private position, what is sent about it, what comes back, and how near the kept answer is on average.

import { BudgetExceeded, Client, Ledger, ask } from "./dpselect.js";
import { brief, drawAverages, drawStrip } from "./drawing.js";

// So many signals with the epsilon that the page starts with.
const SIGNALS = 25;
const element = (name) => document.getElementById(name);

const state = { clients: new Map(), signal: null, targets: [], results: [], chosen: null };

const position = () => Number(element("position").value);
const epsilon = () => state.offer.epsilons[Number(element("epsilon").value)];
const k = () => Number(element("k").value);
const address = (count) => `/v1/multiselect/${encodeURIComponent(state.offer.name)}?k=${count}&epsilon=${epsilon()}`;
// A hundredth of a hundredth of the map is the last digit.
const length = (value) => `${value.toFixed(Math.min(20, state.digits))} ${state.offer.unit}`;

// One client for each epsilon, all on one ledger.
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
  showAverage();
}

function showAverage() {
  drawAverages(element("averages"), { answers: state.answers, k: k(), unit: state.offer.unit });
  const { average_distance: average, margin } = state.answers[k() - 1];
  // Two digits of the margin, and as many decimals of the average.
  const digits = margin > 0 ? Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(margin)))) : state.digits;
  element("average-text").textContent = `With k = ${k()} and ε = ${epsilon()}: ${average.toFixed(digits)} ± ${margin.toFixed(digits)} ${state.offer.unit} on average.`;
}

async function settings() {
  const wanted = epsilon();
  const reply = await fetch(address(element("k").max));
  const described = await reply.json();
  if (wanted !== epsilon()) return;
  if (!reply.ok) throw new Error(described.error);
  state.answers = described.answers;
  state.users = described.simulated_users;
  forget();
  show();
}

async function onAsk() {
  element("ask").disabled = true;
  const [from, answers, place, to] = [client(), state.answers[k() - 1], position(), address(k())];
  let sent = null;
  try {
    const signal = from.signal(place);
    sent = `POST ${to}\n${JSON.stringify({ signal })}`;
    const { results } = await ask(to, signal);
    say("", false);
    // Whoever moved a slider meanwhile has asked about something else.
    if (place === position() && to === address(k())) {
      const chosen = from.choose(results);
      Object.assign(state, { signal, results, chosen, targets: answers.offsets.map((offset) => signal + offset) });
      element("kept-noise").textContent = length(signal - place);
      element("kept-choice").textContent = `${chosen.item}, at ${length(chosen.position)}`;
      element("kept-distance").textContent = length(Math.abs(chosen.position - place));
    }
  } catch (error) {
    say(error instanceof BudgetExceeded ? "Refused: another signal would exceed your privacy budget. Nothing was sent. This happens at every position alike, so it tells nothing about yours." : `It failed: ${error.message}`, true);
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

async function start() {
  const reply = await fetch("/v1/multiselect");
  state.offer = (await reply.json()).catalogues.find(({ kind }) => kind === "line");
  if (state.offer === undefined) throw new Error("this service has no catalogue on a line, and the page shows no others");
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
  element("average-note").textContent = `The average is over ${state.users.toLocaleString("en")} simulated users, spread evenly from ${brief(low)} to ${brief(high)} ${unit}. Each sends one signal, and keeps the nearest of the answers from the ${state.offer.results.toLocaleString("en")} results served here. Your own distance depends on where you are.`;
  element("position").addEventListener("input", () => { forget(); show(); });
  element("k").addEventListener("input", () => { forget(); show(); });
  element("epsilon").addEventListener("input", () => settings().catch((error) => say(`It failed: ${error.message}`, true)));
  element("ask").addEventListener("click", onAsk);
  element("ask").disabled = false;
}

start().catch((error) => say(`The page could not start: ${error.message}`, true));
