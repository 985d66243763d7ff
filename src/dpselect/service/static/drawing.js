// The two pictures of the page: the coast with positions on it, and the average distance against the number of answers.
// Both are drawn for the width they have, so that their text keeps its size on a phone.

const SPACE = "http://www.w3.org/2000/svg";
const ROAD = 150;

function add(parent, name, attributes, text) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

const widthOf = (svg) => Math.max(240, Math.round(svg.getBoundingClientRect().width));

function blank(svg, width, height) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
}

// A number without the last digits of its float.
export const brief = (number) => Number(number.toPrecision(6)).toString();

function shore(width) {
  let path = `M0 88`;
  for (let x = 0; x <= width + 10; x += 10) path += `L${x} ${88 + 9 * Math.sin(x / 47) + 6 * Math.sin(x / 19 + 1) + 3 * Math.sin(x / 7)}`;
  return path;
}

// Adds a text with its middle at x, or as near to it as the picture allows, and returns it with both its ends.
function write(parent, width, attributes, text) {
  const written = add(parent, "text", { ...attributes, "text-anchor": "middle" }, text);
  const half = written.getComputedTextLength() / 2;
  const middle = Math.min(width - half - 5, Math.max(half + 5, attributes.x));
  written.setAttribute("x", middle);
  return { written, left: middle - half, right: middle + half };
}

// Names each landmark in the first row that has room; without room it keeps its mark only.
function drawLandmarks(map, landmarks, along, width, rows) {
  const ends = Array(rows).fill(-Infinity);
  for (const [name, place] of Object.entries(landmarks).sort(([, one], [, other]) => one - other)) {
    add(map, "rect", { x: along(place) - 4, y: ROAD + 12, width: 8, height: 8, class: "town" });
    const { written, left, right } = write(map, width, { x: along(place), class: "town-name" }, name);
    const row = ends.findIndex((end) => left > end + 5);
    if (row < 0) {
      written.remove();
    } else {
      written.setAttribute("y", ROAD + 36 + 16 * row);
      ends[row] = right;
    }
  }
}

export function drawStrip(svg, { offer, position, half, signal, targets, results, chosen }) {
  const [start, end] = offer.shown;
  const width = widthOf(svg);
  const margin = Math.min(30, width / 20);
  const along = (place) => margin + ((width - 2 * margin) * (place - start)) / (end - start);
  const rows = width < 700 ? 2 : 1;
  const you = ROAD + 42 + 16 * rows;
  const height = you + 42;
  blank(svg, width, height);
  add(add(add(svg, "defs", {}), "clipPath", { id: "frame" }), "rect", { x: 0, y: 0, width, height, rx: 8 });
  const map = add(svg, "g", { "clip-path": "url(#frame)" });
  add(map, "rect", { width, height, class: "sea" });
  add(map, "path", { d: `${shore(width)}L${width + 10} ${height}L0 ${height}Z`, class: "land" });
  add(map, "path", { d: shore(width), class: "shore" });
  const low = along(position - half);
  add(map, "rect", { x: low, y: 0, width: along(position + half) - low, height, class: "noise-band" });
  for (const kind of ["road-edge", "road"]) add(map, "line", { x1: -20, y1: ROAD, x2: width + 20, y2: ROAD, class: kind });
  drawLandmarks(map, offer.landmarks, along, width, rows);
  const step = roundStep((end - start) / Math.min(10, width / 70));
  const first = Math.ceil(start / step);
  for (let count = first; count * step <= end; count += 1) {
    const x = along(count * step);
    const text = count === first ? `${brief(count * step)} ${offer.unit}` : brief(count * step);
    add(map, "line", { x1: x, y1: height - 28, x2: x, y2: height - 22, class: "tick" });
    write(map, width, { x, y: height - 8 }, text);
  }
  if (signal !== null) drawAnswer(map, along, width, { signal, targets, results, chosen });
  add(map, "circle", { cx: along(position), cy: ROAD, r: 9, class: "you-mark" });
  write(map, width, { x: along(position), y: you, class: "you-text" }, "you");
}

function drawAnswer(map, along, width, { signal, targets, results, chosen }) {
  const inside = (place) => along(place) > 4 && along(place) < width - 4;
  for (const target of targets) {
    if (inside(target) || inside(signal)) {
      const middle = (along(signal) + along(target)) / 2;
      add(map, "path", { d: `M${along(signal)} 42Q${middle} 62 ${along(target)} 104`, class: "offset" });
    }
  }
  for (const result of [...results.filter((each) => each !== chosen), chosen]) {
    const x = along(result.position);
    add(map, "line", { x1: x, y1: 112, x2: x, y2: ROAD, class: "stem" });
    add(map, "circle", { cx: x, cy: 108, r: result === chosen ? 9 : 7, class: result === chosen ? "pin kept" : "pin" });
  }
  const shown = Math.min(width - 15, Math.max(15, along(signal)));
  const outside = results.filter((result) => !inside(result.position)).length;
  if (outside > 0) {
    // On the side where the signal is not.
    const place = shown > width / 2 ? { x: 10, "text-anchor": "start" } : { x: width - 10, "text-anchor": "end" };
    add(map, "text", { ...place, y: 41, class: "beyond" }, `${outside} of ${results.length} answers beyond this map`);
  }
  add(map, "path", { d: `M${shown} 27l9 9l-9 9l-9 -9Z`, class: "sent-mark" });
  const text = shown === along(signal) ? "signal" : "signal (beyond this map)";
  write(map, width, { x: shown, y: 18, class: "sent-text" }, text);
}

export function drawAverages(svg, { answers, k, unit }) {
  const [width, height] = [widthOf(svg), 290];
  const [left, right, top, bottom] = [52, width - 12, 34, height - 48];
  blank(svg, width, height);
  const most = Math.max(...answers.map((each) => each.average_distance + each.margin)) * 1.08 || 1;
  const x = (count) => left + ((right - left) * (count - 0.5)) / answers.length;
  const y = (distance) => bottom - ((bottom - top) * distance) / most;
  const wide = (right - left) / answers.length;
  add(svg, "rect", { x: x(k) - wide / 2 + 2, y: top, width: wide - 4, height: bottom - top, rx: 5, class: "now" });
  const step = roundStep(most / 5);
  for (let count = 0; count * step <= most; count += 1) {
    const level = y(count * step);
    add(svg, "line", { x1: left, y1: level, x2: right, y2: level, class: count === 0 ? "axis" : "grid-line" });
    add(svg, "text", { x: left - 8, y: level + 4, "text-anchor": "end" }, brief(count * step));
  }
  add(svg, "text", { x: 0, y: 14 }, `average distance, ${unit}`);
  for (const { k: count, average_distance: mean, margin } of answers) {
    add(svg, "line", { x1: x(count), x2: x(count), y1: y(mean - margin), y2: y(mean + margin), class: "margin" });
  }
  add(svg, "polyline", { points: answers.map((each) => `${x(each.k)},${y(each.average_distance)}`).join(" "), class: "means" });
  for (const each of answers) {
    add(svg, "circle", { cx: x(each.k), cy: y(each.average_distance), r: 3.5, class: "mean" });
    add(svg, "text", { x: x(each.k), y: bottom + 18, "text-anchor": "middle" }, `${each.k}`);
  }
  add(svg, "text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, "number of answers k");
}

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough);
}
