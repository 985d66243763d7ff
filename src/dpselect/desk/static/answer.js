// A release on the page: its items, its numbers and its guarantee.

import { largest, valuesChart } from "./charts.js";
import { brief, make, whole } from "./elements.js";

// The name of an item as text. Items of the domain that nobody has are answered as objects when only their number is public.
export const nameOf = (item) => (typeof item === "object" && item !== null ? JSON.stringify(item) : String(item));

// The tables of a release: one, or one for each group, as {group, rows: [{item, value, low, high}], stopped}.
export function tablesOf(release) {
  if (release.groups) return release.group_order.map((group) => ({ ...tableOf(release.groups[String(group)]), group: String(group) }));
  return [{ ...tableOf(release), group: null }];
}

function tableOf(release) {
  const rows = release.items.map((item, place) => {
    const [low, high] = release.intervals?.[place] ?? [null, null];
    return { item: nameOf(item), value: release.values?.[place] ?? null, low, high };
  });
  // A set has no order of its own; with published numbers these are what readers look for.
  if (!release.ordered && release.values) rows.sort((first, second) => second.value - first.value);
  return { rows, stopped: release.stopped === true };
}

export const hasNumbers = (tables) => tables.some(({ rows }) => rows.some((row) => row.value !== null));

export const wordsOf = (release) => [release.words?.guarantee, release.words?.reach, release.words?.protection].filter(Boolean);

export function questionWords({ k, item, ordered, by, filter, period, values, aim }) {
  const parts = [`the ${k === 1 ? `“${item}”` : `${k} values of “${item}”`} that most people have${ordered && k > 1 ? ", ranked" : ""}`];
  if (by) parts.push(`for each “${by}”`);
  if (filter) parts.push(`only “${filter}”`);
  if (period) parts.push(`in ${period}`);
  if (values) parts.push("with rough numbers");
  if (aim === "exact") parts.push("all right as often as possible");
  const text = parts.join(", ");
  return text[0].toUpperCase() + text.slice(1);
}

export function orderNote(release) {
  if (release.k === 1) return "";
  const numbered = hasNumbers(tablesOf(release));
  if (release.ordered) return `Ranked: the first is the most frequent.${numbered ? " The noisy numbers of neighbours may disagree with their ranks." : ""}`;
  return numbered ? "Sorted by the noisy number; the order of neighbours may be wrong." : "In random order: the answer says which, not in which order.";
}

// Fill a place with a release. `heading` is the level of the headings in it.
export function showRelease(place, release, { heading = "h3" } = {}) {
  const tables = tablesOf(release);
  const numbered = hasNumbers(tables);
  const parts = [];
  const note = orderNote(release);
  if (note) parts.push(make("p", { class: "hint" }, note));
  const shown = tables.map(({ group, rows, stopped }) => {
    const part = make("div", { class: "answer-table" });
    if (group !== null) part.append(make(heading, {}, group));
    if (rows.length === 0) part.append(make("p", {}, "No item came out."));
    else if (!numbered) part.append(listOf(rows, release));
    else part.append(tableElement(rows, release));
    if (stopped) part.append(make("p", { class: "hint" }, `Fewer than ${release.k}: the rest could not be told apart from items that few people have.`));
    return part;
  });
  parts.push(tables.length > 1 ? make("div", { class: "answer-groups" }, ...shown) : shown[0]);
  const confidence = release.confidence ?? Object.values(release.groups ?? {})[0]?.confidence;
  if (confidence) parts.push(make("p", { class: "hint" }, `The thin line holds the true number with probability ${brief(confidence)}.`));
  place.replaceChildren(...parts);
  if (!numbered) return;
  const most = largest(tables.flatMap(({ rows }) => rows));
  tables.forEach(({ group, rows }, index) => {
    if (rows.length === 0) return;
    const title = `Noisy number of people for ${rows.length} items${group === null ? "" : `, ${group}`}`;
    drawFitting(shown[index], (width) => valuesChart(rows, width, title, most));
  });
}

// Draw a chart before the table of a part, for the width that it has on the page, and again when that changes.
function drawFitting(part, drawn) {
  const table = part.querySelector("details");
  let [chart, width] = [null, 0];
  const draw = () => {
    const fitting = Math.max(240, Math.min(part.clientWidth, 760));
    if (part.clientWidth === 0 || fitting === width) return;
    chart?.remove();
    [chart, width] = [drawn(fitting), fitting];
    table.before(chart);
  };
  draw();
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(part);
}

function listOf(rows, release) {
  return make(release.ordered ? "ol" : "ul", { class: "items" }, ...rows.map((row) => make("li", {}, row.item)));
}

function tableElement(rows, release) {
  const head = [release.ordered ? make("th", { scope: "col", class: "number" }, "Rank") : null, make("th", { scope: "col" }, "Item"), make("th", { scope: "col", class: "number" }, "People, about"), make("th", { scope: "col", class: "number" }, "From – to")];
  const body = rows.map((row, place) =>
    make(
      "tr",
      {},
      release.ordered ? make("td", { class: "number" }, `${place + 1}`) : null,
      make("td", {}, row.item),
      make("td", { class: "number" }, whole(row.value)),
      make("td", { class: "number" }, row.low === null ? "–" : `${whole(row.low)} – ${whole(row.high)}`),
    ),
  );
  return make("details", {}, make("summary", {}, "As a table"), make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}

export function guaranteeBox(release, looked) {
  const box = make("div", { class: "notice good" }, ...wordsOf(release).map((text) => make("p", {}, text)));
  if (looked) box.append(make("p", {}, make("span", { class: "tag warn" }, "parameters chosen after looking")));
  return box;
}
