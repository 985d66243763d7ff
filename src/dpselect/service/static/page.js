// The page: a private position, what is sent about it, what comes back, and how near the kept answer is on average.

import { BudgetExceeded, Client, Ledger, ask } from "./dpselect.js";
import { brief, drawAverages, drawStrip } from "./drawing.js";

// So many signals with the epsilon that is served by default, which the page starts with.
const SIGNALS = 25;
const KINDS = { line: "positions on a line", ring: "positions on a ring", vectors: "feature vectors" };
const element = (name) => document.getElementById(name);

const state = { clients: new Map(), signal: null, targets: [], results: [], chosen: null };

const position = () => Number(element("position").value);
const epsilon = () => state.offer.epsilons[Number(element("epsilon").value)];
const k = () => Number(element("k").value);
const path = (name) => `/v1/multiselect/${encodeURIComponent(name)}`;
const address = (count) => `${path(state.offer.name)}?k=${count}&epsilon=${epsilon()}`;
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
  say("", false);
}

function show() {
  const spoken = { position: length(position()), epsilon: `${epsilon()} per ${state.offer.unit}`, k: `${k()}` };
  for (const [name, text] of Object.entries(spoken)) {
    element(`${name}-shown`).textContent = text;
    element(name).setAttribute("aria-valuetext", text);
  }
  element("kept-position").textContent = length(position());
  element("spent").textContent = Number(state.ledger.spent.toPrecision(3)).toString();
  element("budget").textContent = `${Number(state.budget.toPrecision(6))}`;
  element("meter").value = state.ledger.spent / state.budget;
  const { average_distance: average, margin } = state.answers[k() - 1];
  // Two digits of the margin, and as many decimals of the average.
  const digits = margin > 0 ? Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(margin)))) : state.digits;
  element("average-text").textContent = `With k = ${k()} and ε = ${epsilon()}: ${average.toFixed(digits)} ± ${margin.toFixed(digits)} ${state.offer.unit} on average.`;
  draw();
}

function draw() {
  const { answers, signal, results, chosen, offer: { unit } } = state;
  // Half of all Laplace noise is smaller than ln 2 / epsilon.
  drawStrip(element("strip"), { ...state, position: position(), half: Math.LN2 / epsilon() });
  drawAverages(element("averages"), { answers, k: k(), unit });
  const places = results.map((result) => length(result.position)).join(", ");
  const answered = signal === null ? "No signal was sent from here yet." : `Signal at ${length(signal)}. Answers at ${places}. Kept: the one at ${length(chosen.position)}.`;
  element("strip").setAttribute("aria-label", `You are at ${length(position())}. ${answered}`);
  const averages = answers.map((each) => `${each.k}: ${length(each.average_distance)}`).join("; ");
  element("averages").setAttribute("aria-label", `Average distance by number of answers. ${averages}.`);
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
  const button = element("ask");
  const focused = document.activeElement === button;
  button.disabled = true;
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
      say(`${results.length} answers came back. This browser kept ${chosen.item}, ${length(Math.abs(chosen.position - place))} from you, and told nobody.`, false);
    }
  } catch (error) {
    say(error instanceof BudgetExceeded ? "Refused: another signal would exceed your privacy budget. Nothing was sent. This happens at every position alike, so it tells nothing about yours." : `It failed: ${error.message}`, true);
  } finally {
    // Also when no answer came: the server may have the signal all the same.
    if (sent !== null) element("sent").textContent = sent;
    button.disabled = false;
    if (focused) button.focus();
  }
  show();
}

function say(text, refused) {
  element("status").textContent = text;
  element("status").className = refused ? "notice bad refused" : "notice";
}

function code(text) {
  const written = document.createElement("code");
  written.textContent = text;
  return written;
}

// Lists what is served, and says where feature vectors are: here, or by which command.
function list(catalogues) {
  for (const { name, kind, results } of catalogues) {
    const entry = document.createElement("li");
    entry.append(code(path(name)), `: ${results.toLocaleString("en")} results, ${KINDS[kind]}`);
    element("served").append(entry);
  }
  const vectors = catalogues.find(({ kind }) => kind === "vectors");
  const said = vectors ? ["at ", code(`POST ${path(vectors.name)}`)] : ["by ", code("dpselect serve films.csv --features action,romance"), " at ", code(path("films"))];
  element("vectors").replaceChildren(...said);
}

async function start() {
  const reply = await fetch("/v1/multiselect");
  const { catalogues } = await reply.json();
  list(catalogues);
  state.offer = catalogues.find(({ kind }) => kind === "line");
  if (state.offer === undefined) {
    document.body.classList.add("no-line");
    element("title").textContent = "No map here";
    say("This page draws positions on a line; this service has no catalogue on a line. What it answers is listed below.", false);
    return;
  }
  const { epsilons, shown: [low, high], unit, most, title } = state.offer;
  element("title").textContent = title || state.offer.name;
  element("epsilon").max = epsilons.length - 1;
  element("epsilon").value = epsilons.indexOf(state.offer.epsilon);
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
  window.addEventListener("resize", draw);
  element("ask").disabled = false;
}

start().catch((error) => say(`The page could not start: ${error.message}`, true));
