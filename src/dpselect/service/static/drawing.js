// The two pictures of the page: the coast with positions on it, and the average distance against the number of answers.

const SPACE = "http://www.w3.org/2000/svg";

function add(parent, name, attributes, text) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

const LEFT = 30;
const WIDTH = 940;
const ROAD = 150;

const placing = ([low, high]) => (position) => LEFT + (WIDTH * (position - low)) / (high - low);

// A number without the last digits of its float.
export const brief = (number) => Number(number.toPrecision(6)).toString();

function shore() {
  let path = `M0 88`;
  for (let x = 0; x <= 1000; x += 10) path += `L${x} ${88 + 9 * Math.sin(x / 47) + 6 * Math.sin(x / 19 + 1) + 3 * Math.sin(x / 7)}`;
  return path;
}

// Returns how far along the map the user is, from 0 to 1.
export function drawStrip(svg, { offer, position, half, signal, targets, results, chosen }) {
  const along = placing(offer.shown);
  svg.replaceChildren();
  const clip = add(add(svg, "defs", {}), "clipPath", { id: "frame" });
  add(clip, "rect", { x: 0, y: 0, width: 1000, height: 250, rx: 8 });
  const map = add(svg, "g", { "clip-path": "url(#frame)" });
  add(map, "rect", { width: 1000, height: 250, class: "sea" });
  add(map, "path", { d: `${shore()}L1000 250L0 250Z`, class: "land" });
  add(map, "path", { d: shore(), class: "shore" });
  const low = along(position - half);
  add(map, "rect", { x: low, y: 0, width: along(position + half) - low, height: 250, class: "noise-band" });
  for (const kind of ["road-edge", "road"]) add(map, "line", { x1: -20, y1: ROAD, x2: 1020, y2: ROAD, class: kind });
  for (const [name, place] of Object.entries(offer.landmarks)) {
    add(map, "rect", { x: along(place) - 4, y: ROAD + 12, width: 8, height: 8, class: "town" });
    add(map, "text", { x: along(place), y: ROAD + 38, "text-anchor": "middle", class: "town-name" }, name);
  }
  const [start, end] = offer.shown;
  const step = roundStep((end - start) / 10);
  const first = Math.ceil(start / step);
  for (let count = first; count * step <= end; count += 1) {
    const place = count * step;
    add(map, "line", { x1: along(place), y1: 222, x2: along(place), y2: 228, class: "tick" });
    add(map, "text", { x: along(place), y: 243, "text-anchor": "middle" }, count === first ? `${brief(place)} ${offer.unit}` : brief(place));
  }
  if (signal !== null) drawAnswer(map, along, { signal, targets, results, chosen });
  add(map, "circle", { cx: along(position), cy: ROAD, r: 9, class: "you-mark" });
  add(map, "text", { x: along(position), y: ROAD + 58, "text-anchor": "middle", class: "you-text" }, "you");
  return along(position) / 1000;
}

function drawAnswer(map, along, { signal, targets, results, chosen }) {
  const inside = (place) => along(place) > 4 && along(place) < 996;
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
  const outside = results.filter((result) => !inside(result.position)).length;
  if (outside > 0) {
    add(map, "text", { x: 992, y: 20, "text-anchor": "end" }, `${outside} of ${results.length} answers beyond this map`);
  }
  const shown = Math.min(985, Math.max(15, along(signal)));
  add(map, "path", { d: `M${shown} 27l9 9l-9 9l-9 -9Z`, class: "sent-mark" });
  const beyond = shown === along(signal) ? "" : " (beyond this map)";
  const anchor = shown > 900 ? "end" : shown < 100 ? "start" : "middle";
  add(map, "text", { x: shown, y: 18, "text-anchor": anchor, class: "sent-text" }, `signal${beyond}`);
}

export function drawAverages(svg, { answers, k, unit }) {
  svg.replaceChildren();
  const [left, right, top, bottom] = [62, 622, 16, 250];
  const most = Math.max(...answers.map((each) => each.average_distance + each.margin)) * 1.08 || 1;
  const x = (count) => left + ((right - left) * (count - 0.5)) / answers.length;
  const y = (distance) => bottom - ((bottom - top) * distance) / most;
  const wide = (right - left) / answers.length;
  add(svg, "rect", { x: x(k) - wide / 2 + 3, y: top, width: wide - 6, height: bottom - top, rx: 5, class: "now" });
  const step = roundStep(most / 5);
  for (let distance = 0; distance <= most; distance += step) {
    add(svg, "line", { x1: left, y1: y(distance), x2: right, y2: y(distance), class: distance === 0 ? "axis" : "grid-line" });
    add(svg, "text", { x: left - 8, y: y(distance) + 4, "text-anchor": "end" }, brief(distance));
  }
  add(svg, "text", { x: left - 46, y: top + 2, transform: `rotate(-90 ${left - 46} ${(top + bottom) / 2}) translate(${-(bottom - top) / 2 + 60} ${(top + bottom) / 2 - top})` }, `distance, ${unit}`);
  for (const { k: count, average_distance: mean, margin } of answers) {
    add(svg, "line", { x1: x(count), x2: x(count), y1: y(mean - margin), y2: y(mean + margin), class: "margin" });
  }
  add(svg, "polyline", { points: answers.map((each) => `${x(each.k)},${y(each.average_distance)}`).join(" "), class: "means" });
  for (const each of answers) {
    add(svg, "circle", { cx: x(each.k), cy: y(each.average_distance), r: 3.5, class: "mean" });
    add(svg, "text", { x: x(each.k), y: bottom + 18, "text-anchor": "middle" }, `${each.k}`);
  }
  add(svg, "text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, "number of answers k");
}

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough);
}
