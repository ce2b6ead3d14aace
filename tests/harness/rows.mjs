// SPDX-License-Identifier: Apache-2.0
// The oracle: what a table must hold, by arithmetic on arrays of rows. Nothing here looks at what lancefs says.
import assert from "node:assert/strict";

// The rows that the generators write: id, a text, a number.
export const rows = (from, n, tag = "r") =>
  Array.from({ length: n }, (_, i) => ({ id: from + i, v: `${tag}${from + i}`, n: from + i }));
export const span = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

export const without = (table, ...ids) => {
  const gone = new Set(ids.flat());
  return table.filter((r) => !gone.has(r.id));
};
export const changed = (table, ids, values) => {
  const hit = new Set([ids].flat());
  return table.map((r) => (hit.has(r.id) ? { ...r, ...values } : r));
};

// Each row with the columns that fn(row) gives.
export const plus = (table, fn) => table.map((r) => ({ ...r, ...fn(r) }));

// overlap_deletes: what its generator did to main and to feature, and what both did together.
export const OVERLAP = {
  main: [...without(rows(0, 300), span(15, 24), span(250, 259)), ...rows(2000, 2, "m")],
  feature: [...without(rows(0, 300), span(10, 19), span(150, 159)), ...rows(1000, 3, "f")],
  union: [
    ...without(rows(0, 300), span(10, 24), span(150, 159), span(250, 259)),
    ...rows(1000, 3, "f"),
    ...rows(2000, 2, "m"),
  ],
};

const lines = (columns, table) => table.map((r) => JSON.stringify(columns.map((c) => r[c] ?? null)));

// Are these exactly the rows of a stock reader's answer (reader.mjs: read)? Columns too, when there are rows.
export function expectRows(answer, expected, where) {
  if (expected.length)
    assert.deepEqual([...answer.columns].sort(), Object.keys(expected[0]).sort(), `columns of ${where}`);
  const want = new Map(),
    tally = (line, n) => want.set(line, (want.get(line) ?? 0) + n);
  lines(answer.columns, expected).forEach((l) => tally(l, 1));
  answer.rows.forEach((r) => tally(JSON.stringify(r), -1));
  const wrong = [...want].filter(([, n]) => n !== 0).map(([l, n]) => `${n > 0 ? "missing" : "too many"}: ${l}`);
  const more = wrong.length > 12 ? [`... and ${wrong.length - 12} more`] : [];
  assert.equal(
    wrong.length,
    0,
    `${where}: ${answer.rows.length} rows instead of ${expected.length}\n${[...wrong.slice(0, 12), ...more].join("\n")}`,
  );
  assert.equal(answer.count, expected.length, `${where}: count_rows differs from the scan`);
  assert.deepEqual(answer.wrong, [], `${where}: filters through an index`);
}
