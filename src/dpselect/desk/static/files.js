// A release as files: CSV, JSON, and a report of one HTML page that prints well and needs nothing else.

import { hasNumbers, orderNote, tablesOf, wordsOf } from "./answer.js";
import { valuesChart } from "./charts.js";
import { above, brief, download, make, whole } from "./elements.js";

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; color: #17303b; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; } p { margin: 0 0 .6rem; }
.soft { color: #52676f; font-size: .9rem; } .mark { border: 1px solid #855600; color: #855600; border-radius: 4px; padding: 1px 8px; font-weight: 600; }
table { border-collapse: collapse; width: 100%; } th, td { padding: 4px 10px 4px 0; border-bottom: 1px solid #d9e1e1; text-align: left; vertical-align: top; }
h1, h2, td { overflow-wrap: anywhere; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.groups { font-size: .88rem; } .groups h2 { margin: .7rem 0 0; font-size: 1rem; } .groups th, .groups td { padding: 1px 10px 1px 0; } .group { break-inside: avoid; } dl { display: grid; grid-template-columns: auto 1fr; gap: 2px 16px; }
dt { color: #52676f; } dd { margin: 0; overflow-wrap: anywhere; } svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #52676f; }
svg .name { fill: #17303b; } .axis { stroke: #6f848c; } .grid-line { stroke: #d9e1e1; } .value-bar { fill: #2f8577; } .interval { stroke: #17303b; stroke-width: 1.5; fill: none; }
@media (min-width: 30rem) { .number { width: 7rem; } .rank { width: 2.5rem; } }
@media print {
  body { margin: 0; padding: 0; max-width: none; font-size: 12px; line-height: 1.4; } h1 { font-size: 1.3rem; } h2 { margin-top: .9rem; } p { margin-bottom: .35rem; }
  svg { width: 560px; print-color-adjust: exact; } th, td { padding-top: 2px; padding-bottom: 2px; } @page { margin: 15mm; }
}`;

const MARKS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => String(text).replace(/[&<>"']/g, (mark) => MARKS[mark]);
const paragraph = (text) => `<p>${escape(text)}</p>`;

function tableText({ group, rows, stopped }, release) {
  const numbered = rows.some((row) => row.value !== null);
  const head = [...(release.ordered ? ['<th class="number rank">Rank</th>'] : []), "<th>Item</th>", ...(numbered ? ['<th class="number">People, about</th>', '<th class="number">From – to</th>'] : [])];
  const body = rows.map((row, place) => {
    const cells = [...(release.ordered ? [`<td class="number">${place + 1}</td>`] : []), `<td>${escape(row.item)}</td>`];
    if (numbered) cells.push(`<td class="number">${whole(row.value)}</td>`, `<td class="number">${row.low === null ? "–" : `${whole(row.low)} – ${whole(row.high)}`}</td>`);
    return `<tr>${cells.join("")}</tr>`;
  });
  const chart = numbered && group === null ? new XMLSerializer().serializeToString(valuesChart(rows, 680, "Noisy numbers of people")) : "";
  const fewer = stopped ? paragraph(`Fewer than ${release.k} items: the rest could not be told apart from items that few people have.`) : "";
  return `<div class="group">${group === null ? "" : `<h2>${escape(group)}</h2>`}${chart}<table><thead><tr>${head.join("")}</tr></thead><tbody>${body.join("")}</tbody></table>${fewer}</div>`;
}

// `about` is {dataset, title, purpose, time, key, looked, analyst}.
export function reportOf(release, { dataset, title, purpose, time, key, looked, analyst }) {
  const { epsilon, delta, protects } = release.guarantee;
  const facts = [
    ["Data set", dataset],
    ["Released", `${new Date(time).toISOString().slice(0, 16).replace("T", " ")} UTC${analyst ? `, by ${analyst}` : ""}`],
    ...(purpose ? [["Purpose", purpose]] : []),
    ["Privacy", `epsilon ${above(epsilon)}${delta ? `, delta ${above(delta)}` : ""}; protects ${protects}`],
    ["Mechanism", release.mechanism?.name ?? "–"],
    ["Key", key],
  ];
  const confidence = release.confidence ?? Object.values(release.groups ?? {})[0]?.confidence;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escape(title)}</title><style>${STYLE}</style></head>
<body>
<h1>${escape(title)}</h1>
<p class="soft">${escape(orderNote(release))}${confidence ? ` Each range holds the true number with probability ${brief(confidence)}.` : ""}</p>
<div${release.groups ? ' class="groups"' : ""}>${tablesOf(release).map((table) => tableText(table, release)).join("\n")}</div>
<h2>How the people in the data are protected</h2>
${wordsOf(release).map(paragraph).join("\n")}
${looked ? '<p><span class="mark">parameters chosen after looking</span> Whoever asked had seen the real rows, so that the choice of k or epsilon may itself tell something.</p>' : ""}
<dl>${facts.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`).join("")}</dl>
</body></html>
`;
}

const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function csvOf(release) {
  const tables = tablesOf(release);
  const [grouped, ranked, numbered] = [tables[0]?.group !== null, release.ordered, hasNumbers(tables)];
  const head = [...(grouped ? ["group"] : []), ...(ranked ? ["rank"] : []), "item", ...(numbered ? ["value", "low", "high"] : [])];
  const lines = tables.flatMap(({ group, rows }) =>
    rows.map((row, place) => [...(grouped ? [group] : []), ...(ranked ? [place + 1] : []), row.item, ...(numbered ? [row.value, row.low ?? "", row.high ?? ""] : [])]),
  );
  return [head, ...lines].map((line) => line.map((each) => cell(String(each))).join(",")).join("\r\n") + "\r\n";
}

// Buttons for the files. `about` is as for the report.
export function downloads(release, about) {
  const name = `${about.dataset}-${new Date(about.time).toISOString().slice(0, 10)}`;
  const plain = { ...release };
  delete plain.words;
  const button = (label, kind, action) => make("button", { type: "button", class: "quiet small-button", "data-download": kind, click: action }, label);
  return make(
    "div",
    { class: "row downloads" },
    button("Download CSV", "csv", () => download(`${name}.csv`, "text/csv", csvOf(release))),
    button("Download JSON", "json", () => download(`${name}.json`, "application/json", `${JSON.stringify(plain, null, 2)}\n`)),
    button("Download a one-page report", "report", () => download(`${name}.html`, "text/html", reportOf(release, about))),
  );
}
