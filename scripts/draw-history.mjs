#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Draws what a branch's .log.graph says as an SVG picture: a row a version, a line a branch, what each version did beside it.
//
//     node scripts/draw-history.mjs [TITLE=]FILE... > picture.svg      several are drawn side by side
//
// Times are left out, so that one history makes one picture. scripts/pictures.sh makes those of README.
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const LANE = 22, // pixels between two lines
  ROW = 26,
  DOT = 5,
  TEXT = 330, // width of what stands beside a graph
  TOP = 44,
  COLOURS = ["#2f6db5", "#b5562f", "#2f8f5b", "#7a4fb0", "#a08a1c"];

// Rows of the graph: { graph, version, branch, operation, rows, from }, without the last ones where the row is only lines.
export function parse(text) {
  const [head, ...lines] = text.trimEnd().split("\n");
  const names = head.replace(/^# /, "").split("\t");
  if (names[0] !== "graph") throw new Error(`no .log.graph: it begins with ${head}`);
  return lines.map((line) => Object.fromEntries(line.split("\t").map((field, i) => [names[i], field])));
}

const escaped = (s) => s.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const line = (x1, y1, x2, y2) => `<path d="M${x1} ${y1}L${x2} ${y2}" stroke="#888" stroke-width="2" fill="none"/>`;

// A character at position p of a row is a line's at even p (line p/2), and between two lines at odd p.
function edges(rows, x, y) {
  const out = [],
    lane = (p) => x + (p / 2) * LANE,
    centre = (i) => y + i * ROW + ROW / 2;
  rows.forEach(({ graph }, i) => {
    [...graph].forEach((c, p) => {
      const top = centre(i) - ROW / 2,
        bottom = centre(i) + ROW / 2,
        below = rows[i + 1]?.graph ?? "",
        above = rows[i - 1]?.graph ?? "";
      const meets = (g, slash, backslash) => "*|".includes(g[p] || " ") || g[p - 1] === slash || g[p + 1] === backslash;
      if (c === "|") out.push(line(lane(p), top, lane(p), bottom));
      if (c === "\\") out.push(line(lane(p - 1), top, lane(p + 1), bottom));
      if (c === "/") out.push(line(lane(p + 1), top, lane(p - 1), bottom));
      if (c === "-") out.push(line(lane(p - 1), top, lane(p + 1), top));
      if (c === "*" && meets(above, "\\", "/")) out.push(line(lane(p), top, lane(p), centre(i)));
      if (c === "*" && meets(below, "/", "\\")) out.push(line(lane(p), centre(i), lane(p), bottom));
    });
  });
  return out;
}

function panel({ title, rows }, x) {
  const colour = new Map(),
    lanes = Math.max(...rows.map((r) => Math.ceil(r.graph.length / 2))),
    out = [`<text x="${x}" y="26" font-weight="bold">${escaped(title)}</text>`, ...edges(rows, x + DOT, TOP)];
  for (const r of [...rows].reverse()) if (r.branch && !colour.has(r.branch)) colour.set(r.branch, COLOURS[colour.size % COLOURS.length]);
  rows.forEach((r, i) => {
    const p = r.graph.indexOf("*");
    if (p < 0) return;
    const cy = TOP + i * ROW + ROW / 2,
      cx = x + DOT + (p / 2) * LANE,
      at = x + lanes * LANE + 8;
    out.push(`<circle cx="${cx}" cy="${cy}" r="${DOT}" fill="${colour.get(r.branch)}"/>`);
    out.push(`<text x="${at}" y="${cy + 4}" fill="${colour.get(r.branch)}">${escaped(`${r.branch}@${r.version}`)}</text>`);
    const did = r.from === "-" ? r.operation : `${r.operation} ${r.from}`;
    out.push(`<text x="${at + 90}" y="${cy + 4}" fill="#333">${escaped(did)}</text>`);
    out.push(`<text x="${at + 250}" y="${cy + 4}" fill="#777">${escaped(r.rows)}</text>`);
  });
  return { text: out.join("\n"), width: lanes * LANE + TEXT, height: TOP + rows.length * ROW + 14 };
}

// graphs: [{ title, rows }].
export function draw(graphs) {
  let x = 20;
  const panels = graphs.map((g) => {
    const p = panel(g, x);
    x += p.width + 20;
    return p;
  });
  const height = Math.max(...panels.map((p) => p.height));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${x}" height="${height}" viewBox="0 0 ${x} ${height}" font-family="monospace" font-size="13">
<!-- SPDX-License-Identifier: Apache-2.0; made by scripts/pictures.sh -->
<rect width="${x}" height="${height}" rx="8" fill="#fbfbf8"/>
${panels.map((p) => p.text).join("\n")}
</svg>
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.stdout.write(
    draw(
      process.argv.slice(2).map((arg) => {
        const [, title, file] = /^(?:(.*)=)?(.*)$/.exec(arg);
        return { title: title ?? file, rows: parse(fs.readFileSync(file, "utf8")) };
      }),
    ),
  );
