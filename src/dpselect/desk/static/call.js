// Calls of the desk: the token, errors as sentences, and the key of a release that has no answer yet.

import { above, asSentence, below } from "./elements.js";
import { tell } from "./state.js";

const TOKEN = "dpselect-token";
const PENDING = "dpselect-pending";

// The desk answered and refused.
export class Refused extends Error {
  constructor(status, error, wait) {
    super(error.message ?? `The desk answered with status ${status}.`);
    Object.assign(this, { status, wait, code: error.code ?? "", field: error.field ?? null, details: error });
  }
}

// No answer came, so that nobody knows whether the desk got the question.
export class Unreachable extends Error {}

// The token from the address, which is removed from there, or the one that this tab keeps.
export function findToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(TOKEN);
}

export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);
export const forgetToken = () => sessionStorage.removeItem(TOKEN);

export async function call(method, path, { body, key, signal } = {}) {
  const token = sessionStorage.getItem(TOKEN) ?? "";
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key !== undefined) headers["Idempotency-Key"] = key;
  let reply;
  let answer;
  try {
    reply = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
    });
    answer = await reply.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("No answer came from the desk. Is it still running, and is this machine connected?");
  }
  if (reply.ok) return answer;
  // A late answer to a call with an older token, or with none, says nothing about the one that is used or typed now.
  if (reply.status === 401 && token && token === sessionStorage.getItem(TOKEN)) tell("unauthorized");
  throw new Refused(reply.status, answer.error ?? {}, Number(reply.headers.get("Retry-After")) || null);
}

// 128 random bits; crypto.randomUUID is there on secure pages only.
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// What was asked and not answered: {kind, dataset, body, key}. It outlives a reload of the page.
export function pending() {
  try {
    return JSON.parse(sessionStorage.getItem(PENDING));
  } catch {
    return null;
  }
}

export const keepPending = (asked) => sessionStorage.setItem(PENDING, JSON.stringify(asked));
export const clearPending = () => sessionStorage.removeItem(PENDING);

// Whether the question may still be answered under its key: no answer came, or one that settles nothing.
export const isOpen = (error) => error instanceof Unreachable || [401, 429].includes(error.status) || error.status >= 500;

// What of a budget is not left.
function shortage({ field, details }) {
  const { requested, remaining, requested_delta: delta, remaining_delta: deltaLeft } = details;
  const [name, cost, left] = field === "delta" ? ["delta", delta, deltaLeft] : ["epsilon", requested, remaining];
  const advice = left > 0 ? `Choose a smaller ${name}.` : `Nothing more that needs ${name === "delta" ? "a delta" : "epsilon"} can be released from this budget.`;
  return `Refused: this costs ${name} ${above(cost)}, and ${below(left)} is left. Nothing was spent. ${advice}`;
}

// An error as a sentence for people.
export function sentence(error) {
  if (!(error instanceof Refused)) return error.message;
  switch (error.code) {
    case "budget-exceeded":
      return error.details.remaining === undefined ? error.message : shortage(error);
    case "too-many-requests":
      return `Too many questions in a short time. Wait ${error.wait ?? 60} seconds and try again.`;
    case "too-large":
      return "That is more than the desk accepts at once. Send fewer numbers.";
    case "unauthorized":
      return "The token is not accepted: it may have expired, been revoked, or be incomplete.";
    case "not-found":
      return "The desk does not offer this data set any more. Load the page again to see what it offers.";
    case "key-reused":
      return "This key was used for another question. Ask again: the page takes a new key.";
    case "source-failed":
    case "stopping":
      return asSentence(error.message);
    default:
      return error.message;
  }
}
