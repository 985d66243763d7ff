// The user's side of multi-selection in a browser: noise is added here, and the choice among the answers is made here.
// The law of a signal is exact: bits come from crypto.getRandomValues, and every decision compares BigInt fractions.
// The proof is that of sampling/discrete.md and multiselect/noise.md.

const WORD = 64n;
const buffer = new BigUint64Array(256);
let used = buffer.length;

function word() {
  if (used === buffer.length) {
    crypto.getRandomValues(buffer);
    used = 0;
  }
  const value = buffer[used];
  buffer[used] = 0n;
  used += 1;
  return value;
}

// A finite double as an exact fraction [numerator, denominator].
export function fraction(number) {
  if (typeof number !== "number" || !Number.isFinite(number)) throw new TypeError("a finite number is needed");
  let exponent = 0n;
  let whole = number;
  while (!Number.isInteger(whole)) {
    whole *= 2;
    exponent += 1n;
  }
  return [BigInt(whole), 1n << exponent];
}

// Whether U < numerator / denominator for a uniform U in [0, 1).
function lessThan(numerator, denominator) {
  let rest = numerator;
  if (rest >= denominator) return true;
  while (rest > 0n) {
    const shifted = rest << WORD;
    const wanted = shifted / denominator;
    rest = shifted % denominator;
    const drawn = word();
    if (drawn !== wanted) return drawn < wanted;
  }
  return false;
}

// True with probability exp(-numerator / denominator), for a fraction in [0, 1].
function survives(numerator, denominator) {
  let count = 1n;
  while (lessThan(numerator, denominator * count)) count += 1n;
  return count % 2n === 1n;
}

function uniform(high) {
  const width = BigInt((high - 1n).toString(2).length);
  for (;;) {
    let value = 0n;
    for (let drawn = 0n; drawn < width; drawn += WORD) value = (value << WORD) | word();
    value &= (1n << width) - 1n;
    if (value < high) return value;
  }
}

// An integer y with probability (1 - q) / (1 + q) q^|y|, q = exp(-denominator / numerator).
export function discreteLaplace(numerator, denominator) {
  for (;;) {
    const remainder = uniform(numerator);
    if (!survives(remainder, numerator)) continue;
    let quotient = 0n;
    while (survives(1n, 1n)) quotient += 1n;
    const size = (remainder + numerator * quotient) / denominator;
    const negative = (word() & 1n) === 1n;
    if (size > 0n || !negative) return negative ? -size : size;
  }
}

function floorDivision(numerator, denominator) {
  const quotient = numerator / denominator;
  return numerator % denominator < 0n ? quotient - 1n : quotient;
}

// What all signals of a user cost together, per unit of distance; sums are exact.
export class Ledger {
  #budget;
  #spent = [0n, 1n];

  constructor(budget = null) {
    this.#budget = budget === null ? null : fraction(budget);
  }

  // Write a cost down if the budget allows it, and say whether it does.
  charge(epsilon) {
    const [cost, part] = fraction(epsilon);
    // Denominators are powers of two, so that the larger of two serves both.
    const whole = part > this.#spent[1] ? part : this.#spent[1];
    const sum = this.#spent[0] * (whole / this.#spent[1]) + cost * (whole / part);
    if (this.#budget !== null && sum * this.#budget[1] > this.#budget[0] * whole) return false;
    this.#spent = [sum, whole];
    return true;
  }

  get spent() {
    return Number(this.#spent[0]) / Number(this.#spent[1]);
  }
}

export class BudgetExceeded extends Error {}

// Sends signals about private positions: epsilon per unit of distance, on a public grid. When the ledger does not allow
// another signal, every position is refused, so that a refusal tells nothing. With reuse the last signal for the same
// grid point is sent again and other positions are refused. This is private only for a user who stays at one place:
// otherwise it shows whether the user is back at an earlier place.
export class Client {
  #step;
  #scale;
  #ledger;
  #reuse;
  #remembered = new Map();
  #value = null;

  constructor({ epsilon, grid, ledger = new Ledger(), reuse = false }) {
    if (!(epsilon > 0 && grid > 0)) throw new RangeError("epsilon and grid need to be positive");
    const [rate, part] = fraction(epsilon);
    this.epsilon = epsilon;
    this.grid = grid;
    this.#step = fraction(grid);
    this.#scale = [part * this.#step[1], rate * this.#step[0]];
    this.#ledger = ledger;
    this.#reuse = reuse;
  }

  // The number of the grid point nearest to a position.
  #nearest(value) {
    const [position, part] = fraction(value);
    const [step, whole] = this.#step;
    return floorDivision(2n * position * whole + step * part, 2n * step * part);
  }

  // What to send in place of a position. The cost is written down before the noise is drawn.
  signal(value) {
    const place = this.#nearest(value);
    let signal = this.#remembered.get(place);
    if (this.#ledger.charge(this.epsilon)) {
      signal = Number(place + discreteLaplace(...this.#scale)) * this.grid;
      if (this.#reuse) this.#remembered.set(place, signal);
    } else if (signal === undefined) {
      throw new BudgetExceeded("the budget is spent");
    }
    this.#value = value;
    return signal;
  }

  // The best result for the last position, the first of equals; nothing is sent. Quality is a function of the position
  // and a result, the higher the better; without one the nearest result is the best.
  choose(results, quality = (value, result) => -Math.abs(result.position - value)) {
    if (this.#value === null || results.length === 0) throw new RangeError("a signal and its answer are needed first");
    const values = results.map((result) => quality(this.#value, result));
    if (!values.every(Number.isFinite)) throw new TypeError("the quality of every result needs to be a finite number");
    return results[values.indexOf(Math.max(...values))];
  }
}

// The quality of results by a model that a service sends as plain numbers: the sum of A[i][j] u[i] w[j], b[j] w[j] and
// c[j] w[j]^2 over the coordinates u of the user and w of the result.
export function qualityOf({ bilinear, linear, squares }) {
  return (value, result) => {
    const [user, own] = [[value].flat(), [result.vector ?? result.position].flat()];
    if (user.length !== bilinear.length || own.length !== linear.length) throw new TypeError("this model does not fit");
    const weights = linear.map((weight, j) => user.reduce((sum, part, i) => sum + part * bilinear[i][j], weight));
    return own.reduce((sum, part, j) => sum + part * (weights[j] + squares[j] * part), 0);
  };
}

// Sends a signal, and nothing else, and returns the results.
export async function ask(address, signal) {
  const reply = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ signal }),
    credentials: "omit",
    referrerPolicy: "no-referrer",
  });
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return { results: answer.results };
}
