// Charts as inline SVG, drawn for their width in pixels: the curve over epsilon, and published numbers with their intervals.

import { brief, make, whole } from "./elements.js";

const SPACE = "http://www.w3.org/2000/svg";

// The slider below the curve has the same scale, so that its thumb stands below the mark.
export const LOWEST = 0.01;
export const HIGHEST = 10;
const LEFT = 66;
const RIGHT = 16;
const TOP = 12;
const BOTTOM = 172;

function add(parent, name, attributes, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// The value of a curve at an epsilon, on the straight line between its points; null outside of them.
export function valueAt(points, epsilon) {
  const next = points.findIndex((point) => point.epsilon >= epsilon * (1 - 1e-9));
  if (next === -1) return null;
  const [before, after] = [points[Math.max(0, next - 1)], points[next]];
  if (Math.abs(after.epsilon - epsilon) <= 1e-9 * epsilon) return after.value;
  if (next === 0) return null;
  const share = Math.log(epsilon / before.epsilon) / Math.log(after.epsilon / before.epsilon);
  return before.value + share * (after.value - before.value);
}

function leadScale(points) {
  const values = points.map((point) => point.value).filter((value) => value > 0);
  const low = 10 ** Math.floor(Math.log10(Math.max(1, Math.min(...values))));
  const high = Math.max(10 * low, 10 ** Math.ceil(Math.log10(Math.max(...values))));
  const ticks = [];
  const step = Math.log10(high / low) > 5 ? 100 : 10;
  for (let tick = low; tick <= high * 1.001; tick *= step) ticks.push(tick);
  const short = (tick) => (tick >= 1e6 ? `${brief(tick / 1e6)} M` : whole(tick));
  return { ticks, short, y: (value) => BOTTOM - ((BOTTOM - TOP) * Math.log(Math.max(value, low) / low)) / Math.log(high / low) };
}

function plainScale(most) {
  const step = most <= 1 ? 0.25 : roundStep(most / 5);
  const ticks = [];
  for (let tick = 0; tick <= most * 1.001; tick += step) ticks.push(Number(tick.toPrecision(6)));
  return { ticks, short: (tick) => brief(tick), y: (value) => BOTTOM - ((BOTTOM - TOP) * value) / most };
}

export function drawCurve(svg, { curve, epsilon, k }) {
  const width = Math.max(260, svg.parentElement.clientWidth);
  svg.setAttribute("viewBox", `0 0 ${width} 220`);
  svg.replaceChildren();
  const x = (each) => LEFT + ((width - LEFT - RIGHT) * Math.log(each / LOWEST)) / Math.log(HIGHEST / LOWEST);
  const points = curve === null ? [] : shownPoints(curve);
  if (points.length > 0) {
    const { ticks, short, y } = curve.kind === "lead" ? leadScale(points) : plainScale(curve.kind === "success" ? 1 : k);
    for (const tick of ticks) {
      add(svg, "line", { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: "grid-line" });
      add(svg, "text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, short(tick));
    }
    add(svg, "polyline", { points: points.map((point) => `${x(point.epsilon)},${y(point.value)}`).join(" "), class: "curve-line" });
    const value = valueAt(points, epsilon);
    if (value !== null) {
      add(svg, "line", { x1: x(epsilon), x2: x(epsilon), y1: y(value), y2: BOTTOM, class: "curve-drop" });
      add(svg, "circle", { cx: x(epsilon), cy: y(value), r: 7, class: "curve-mark" });
    }
  }
  add(svg, "line", { x1: LEFT, x2: width - RIGHT, y1: BOTTOM, y2: BOTTOM, class: "axis" });
  for (const tick of [0.01, 0.03, 0.1, 0.3, 1, 3, 10]) {
    add(svg, "line", { x1: x(tick), x2: x(tick), y1: BOTTOM, y2: BOTTOM + 5, class: "axis" });
    add(svg, "text", { x: x(tick), y: BOTTOM + 20, "text-anchor": tick === 10 ? "end" : "middle", dx: tick === 10 ? 8 : 0 }, `${tick}`);
  }
  add(svg, "text", { x: (LEFT + width - RIGHT) / 2, y: BOTTOM + 40, "text-anchor": "middle" }, "epsilon");
}

export const shownPoints = ({ points }) =>
  points.filter(({ epsilon, value }) => Number.isFinite(value) && epsilon >= LOWEST * 0.999 && epsilon <= HIGHEST * 1.001);

// The curve as a table, for those who cannot see it.
export function curveTable(curve) {
  const points = shownPoints(curve);
  const step = Math.max(1, Math.ceil(points.length / 12));
  const rows = points.filter((_, place) => place % step === 0);
  return make(
    "table",
    {},
    make("caption", {}, `${curve.value_label}, for each epsilon`),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "epsilon"), make("th", { scope: "col" }, curve.value_label))),
    make("tbody", {}, ...rows.map((point) => make("tr", {}, make("td", {}, brief(point.epsilon)), make("td", {}, brief(point.value, 3))))),
  );
}

const ruler = document.createElement("canvas").getContext("2d");

// How wide a name is in the chart, in pixels.
const widthOf = (name) => ruler.measureText(name).width;

// A name, or as much of it as there is room for.
function shortened(name, room) {
  if (widthOf(name) <= room) return name;
  const letters = [...name].slice(0, 100);
  while (widthOf(`${letters.join("")}…`) > room) letters.pop();
  return `${letters.join("")}…`;
}

// The largest number that bars of these rows show.
export const largest = (rows) => Math.max(1, ...rows.map((row) => Math.max(row.value, row.high ?? row.value)));

// Published numbers as bars, each with the interval that holds the true number. Rows are {item, value, low, high}; charts that stand
// beside each other have the same `most`, so that their bars can be compared.
export function valuesChart(rows, width, title, most = largest(rows)) {
  const narrow = width < 520;
  ruler.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  const names = rows.map((row) => shortened(row.item, narrow ? width - 16 : 200));
  const [left, right] = narrow ? [2, 70] : [20 + Math.max(...names.map(widthOf)), 80];
  const pitch = narrow ? 44 : 30;
  const bottom = rows.length * pitch + 6;
  const height = bottom + 44;
  const svg = document.createElementNS(SPACE, "svg");
  for (const [key, value] of Object.entries({ class: "chart", role: "img", "aria-label": title, viewBox: `0 0 ${width} ${height}`, height })) svg.setAttribute(key, value);
  const x = (value) => left + ((width - left - right) * Math.max(0, value)) / most;
  const step = roundStep(most / (narrow ? 3 : 5));
  for (let tick = 0; tick <= most; tick += step) {
    add(svg, "line", { x1: x(tick), x2: x(tick), y1: 0, y2: bottom, class: tick === 0 ? "axis" : "grid-line" });
    add(svg, "text", { x: x(tick), y: bottom + 16, "text-anchor": tick === 0 ? "start" : "middle" }, whole(tick));
  }
  add(svg, "text", { x: (left + width - right) / 2, y: bottom + 35, "text-anchor": "middle" }, "people");
  rows.forEach((row, place) => {
    const middle = place * pitch + (narrow ? 30 : 15);
    add(svg, "text", narrow ? { x: left + 5, y: middle - 14, class: "name" } : { x: left - 8, y: middle + 4, "text-anchor": "end", class: "name" }, names[place]);
    add(svg, "rect", { x: left, y: middle - 8, width: Math.max(0, x(row.value) - left), height: 16, rx: 2, class: "value-bar" });
    if (row.low !== null) {
      add(svg, "path", { d: `M${x(row.low)} ${middle - 5}v10m0 -5H${x(row.high)}m0 -5v10`, class: "interval" });
    }
    add(svg, "text", { x: Math.max(x(row.value), x(row.high ?? row.value)) + 8, y: middle + 4, class: "name" }, whole(row.value));
  });
  return svg;
}

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough * 0.999);
}
