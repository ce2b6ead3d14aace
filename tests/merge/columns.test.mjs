// SPDX-License-Identifier: Apache-2.0
// Columns: added, dropped, renamed, retyped on either side or both, while rows come, go and change on the other. What is
// new on one side is null in the rows that the other side appended meanwhile, and the answer says so; in rows that it updated
// nulls come only where a strategy says so.
import assert from "node:assert/strict";
import { load } from "../interop/manifest.mjs";
import { changed, plus, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, checkTip, mergesOrRefuses, mounted, onEach } from "../harness/tip.mjs";
import { fieldsOf, merge, mergeFails, scratch, withOps } from "../harness/verbs.mjs";
import { ENGINES } from "../harness/workspace.mjs";

const TWENTY = rows(0, 20);
const twenty = async (t, engine, ...branches) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork(...branches);
  return g;
};
const noted = (a, ...words) =>
  assert.ok(
    a.notes.some((n) => words.every((w) => n.includes(w))),
    `a note with ${words.join(", ")}: ${a.text}`,
  );
// A new column has values for rows that the other side updated: a conflict for each, until rows= lets the updates win.
async function mergeUpdated(g, target, source, ids) {
  const a = await mergeFails(g, target, source, "ECANCELED", "conflict");
  assert.equal(Number(a.conflicts), ids.length, a.text);
  assert.match(a.text, /kind: (update-column|column-update)/);
  const updater = /kind: update-column/.test(a.text) ? "dest-wins" : "source-wins";
  return merge(g, target, `${source} rows=${updater}`);
}
// The reader shows a struct as its entries.
const struct = Object.entries;
const columnNames = (g, branch) => fieldsOf(g, branch).map(([name]) => name);

// --- columns added on both sides ---

const A = (r) => ({ a: r.n + 1 }),
  B = (r) => ({ b: r.n * 2 });
const addA = (g, branch) => g.op(branch, "addColumn", { name: "a", sql: "n + 1" });
const addB = (g, branch) => g.op(branch, "addColumn", { name: "b", sql: "n * 2" });

onEach("both sides added a column under one field id: both stay, each with its values", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  await addA(g, "main");
  await addB(g, "f");
  const ids = (branch) => load(g.storage(branch)).fields.map((f) => f.id);
  assert.deepEqual(ids("main"), ids("f"), "the ids do collide");
  await merge(g, "main", "f");
  assert.deepEqual(columnNames(g, "main"), ["id", "v", "n", "a", "b"]);
  assert.deepEqual(ids("main").slice(0, 4), ids("f"), "the target's own ids stay");
  const all = plus(plus(TWENTY, A), B);
  await checkTip(g, "main", all);
  await merge(g, "main", "f", "up-to-date");
  await merge(g, "f", "main", "fast-forward");
  await merge(g, "f", "main", "up-to-date");
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("both sides added columns and rows: nulls where they belong, again after more commits", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  await addA(g, "main");
  await g.op("main", "add", { rows: plus(rows(200, 2, "m"), () => ({ a: 7 })) });
  await addB(g, "f");
  await g.op("f", "add", { rows: plus(rows(100, 3, "f"), () => ({ b: 5 })) });
  const all = [
    ...plus(plus(TWENTY, A), B),
    ...plus(rows(200, 2, "m"), () => ({ a: 7, b: null })),
    ...plus(rows(100, 3, "f"), () => ({ a: null, b: 5 })),
  ];
  const answer = await merge(g, "main", "f");
  noted(answer, "column a", "3 rows");
  noted(answer, "column b", "2 rows");
  await checkTip(g, "main", all);
  await merge(g, "f", "main", "fast-forward");
  await checkTip(g, "f", all);

  await g.op("f", "addColumn", { name: "c", sql: "id * 3" });
  await g.op("f", "delete", { where: "id IN (3, 200)" });
  await g.op("main", "addColumn", { name: "d", sql: "id - 1" });
  await g.op("main", "update", { where: "id IN (4, 100)", values: { v: "up" } });
  await g.op("main", "delete", { where: "id IN (15, 101)" });
  const next = changed(
    plus(changed(without(all, 3, 200, 15, 101), [4, 100], { v: "up" }), (r) => ({ d: r.id - 1, c: r.id * 3 })),
    [4, 100],
    { c: null },
  );
  noted(await mergeUpdated(g, "main", "f", [4, 100]), "column c", "2 rows");
  await checkTip(g, "main", next);
  await merge(g, "f", "main", "fast-forward");
  await checkThenUnmount(g, { main: next, f: next });
});

onEach("both sides added nested columns: children go with their parents", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  await g.op("main", "addColumns", { columns: { s: "named_struct('x', n, 'y', v)" } });
  await g.op("f", "addColumns", { columns: { p: "named_struct('y', n * 2, 'in', named_struct('z', v))", l: "make_array(n, id)" } });
  await g.op("f", "delete", { where: "id = 2" });
  const all = plus(without(TWENTY, 2), (r) => ({
    s: struct({ x: r.n, y: r.v }),
    p: struct({ y: r.n * 2, in: struct({ z: r.v }) }),
    l: [r.n, r.id],
  }));
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  await merge(g, "f", "main", "fast-forward");
  await g.op("f", "dropColumns", { names: ["s.x"] });
  await g.op("main", "alter", { path: "p.y", rename: "yy" });
  const next = plus(without(TWENTY, 2), (r) => ({
    s: struct({ y: r.v }),
    p: struct({ yy: r.n * 2, in: struct({ z: r.v }) }),
    l: [r.n, r.id],
  }));
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: next });
});

onEach("three branches each added a column under one field id: all of them come together", async (t, engine) => {
  const g = await twenty(t, engine, "f", "h", "k");
  await addA(g, "f");
  await addB(g, "h");
  await g.op("k", "addColumns", { columns: { c: "n * 3", d: "n * 4" } });
  await g.op("k", "dropColumns", { names: ["c"] }); // a file with a column that is no more
  await g.op("k", "update", { where: "id = 7", values: { v: "k" } });
  await merge(g, "main", "f", "fast-forward");
  await merge(g, "main", "h");
  await mergeUpdated(g, "main", "k", [7]);
  const all = plus(changed(TWENTY, 7, { v: "k" }), (r) => ({
    a: r.id === 7 ? null : r.n + 1,
    b: r.id === 7 ? null : r.n * 2,
    d: r.n * 4,
  }));
  await checkTip(g, "main", all);
  for (const branch of ["f", "h", "k"]) await merge(g, branch, "main", "fast-forward");
  await checkThenUnmount(g, { main: all, f: all, h: all, k: all });
});

// --- a column on one side, rows on the other ---

const WITH_A = plus(TWENTY, A);
const ROWS = {
  appended: [(g, b) => g.op(b, "add", { rows: rows(100, 3, "f") }), [...WITH_A, ...plus(rows(100, 3, "f"), () => ({ a: null }))], "3 rows"],
  deleted: [(g, b) => g.op(b, "delete", { where: "id < 12" }), without(WITH_A, span(0, 11))],
  "deleted a whole fragment": [(g, b) => g.op(b, "delete", { where: "id < 10" }), without(WITH_A, span(0, 9))],
  updated: [
    (g, b) => g.op(b, "update", { where: "id IN (3, 13)", values: { v: "up" } }),
    changed(WITH_A, [3, 13], { v: "up", a: null }),
    "2 rows",
    [3, 13],
  ],
  upserted: [
    (g, b) => g.op(b, "mergeInsert", { on: "id", rows: [{ id: 5, v: "in", n: 50 }, { id: 60, v: "in", n: 60 }] }),
    [...changed(WITH_A, 5, { v: "in", n: 50, a: null }), { id: 60, v: "in", n: 60, a: null }],
    "2 rows",
    [5],
  ],
};
for (const [what, [change, all, note, updated]] of Object.entries(ROWS)) {
  for (const [adder, other] of [
    ["main", "f"],
    ["f", "main"],
  ])
    onEach(`${adder} added a column, ${other} ${what}: merged both ways`, async (t, engine) => {
      const g = await twenty(t, engine, "f");
      await addA(g, adder);
      await change(g, other);
      const a = await (updated ? mergeUpdated(g, "main", "f", updated) : merge(g, "main", "f"));
      if (note) noted(a, "column a", note);
      else assert.deepEqual(a.notes, [], "nothing is left to do");
      await checkTip(g, "main", all);
      await merge(g, "f", "main", "fast-forward");
      await checkThenUnmount(g, { main: all, f: all });
    });
}

onEach("a column without nulls cannot come to rows that have no value for it, in either direction", async (t, engine) => {
  const g = await twenty(t, engine, "f", "quiet");
  await g.op("f", "addColumn", { name: "k", sql: "5" });
  assert.deepEqual(fieldsOf(g, "f").at(-1).slice(0, 3), ["k", "int64", false]);
  await g.op("main", "update", { where: "id = 1", values: { v: "up" } });
  await g.op("quiet", "delete", { where: "id = 1" });
  for (const [target, source] of [
    ["main", "f"],
    ["f", "main"],
  ]) {
    const a = await mergeFails(g, target, source, ["ECANCELED", "EOPNOTSUPP"], ["conflict", "refused"]);
    assert.match(a.text, /\bk\b/, "the column is named");
  }
  const FIVE = plus(without(TWENTY, 1), () => ({ k: 5 }));
  await merge(g, "quiet", "f"); // no row lacks it there
  assert.equal(fieldsOf(g, "quiet").at(-1)[2], false, "still without nulls");
  await checkThenUnmount(g, { main: changed(TWENTY, 1, { v: "up" }), quiet: FIVE });
});

// --- one name on both sides ---

onEach("C49 add_columns clash: one name, two types; same: one name, other files; both conflict both ways", async (t, engine) => {
  const g = await mounted(t, "add_columns", engine);
  for (const branch of ["clash", "same"])
    for (const [target, source] of [
      ["main", branch],
      [branch, "main"],
    ]) {
      const a = await mergeFails(g, target, source, "ECANCELED", "conflict");
      assert.match(a.text, /column label/, "the column is named");
    }
  const all = plus(without(rows(0, 100), 60), (r) => ({ label: `L${r.v}` }));
  await checkThenUnmount(g, { main: all, same: plus(rows(0, 100), (r) => ({ label: `L${r.v}` })) });
});

onEach("C33 add_columns backfill: the deletes of both sides and the columns of both sides", async (t, engine) => {
  const g = await mounted(t, "add_columns", engine);
  const all = plus(without(rows(0, 100), 7, 60), (r) => ({ label: `L${r.v}`, extra: r.n + 1 }));
  assert.equal(all.length, 98);
  await merge(g, "main", "backfill");
  await checkTip(g, "main", all);
  await merge(g, "backfill", "main", "fast-forward");
  await checkThenUnmount(g, { main: all, backfill: all });
});

onEach("add_columns score: one field id for label and score, a row with one of them", async (t, engine) => {
  const g = await mounted(t, "add_columns", engine);
  const all = [
    ...plus(without(rows(0, 100), 60), (r) => ({ label: `L${r.v}`, score: r.n * 2 })),
    { id: 900, v: "s", n: 1, label: null, score: 5 },
  ];
  await merge(g, "score", "main");
  await checkTip(g, "score", all);
  await merge(g, "main", "score", "fast-forward");
  await checkThenUnmount(g, { main: all, score: all });
});

onEach("a column that was merged is the same column afterwards, on every branch", async (t, engine) => {
  const g = await twenty(t, engine, "f", "h");
  await addA(g, "f");
  await g.op("main", "addColumn", { name: "own", sql: "id" });
  await merge(g, "main", "f");
  await merge(g, "h", "f", "fast-forward");
  await g.op("h", "delete", { where: "id = 9" });
  const all = plus(without(TWENTY, 9), (r) => ({ own: r.id, a: r.n + 1 }));
  await merge(g, "main", "h"); // a under another id there: no second one, no clash
  assert.deepEqual(columnNames(g, "main"), ["id", "v", "n", "own", "a"]);
  await checkThenUnmount(g, { main: all, h: without(WITH_A, 9) });
});

// --- dropped ---

const EDITED = changed(TWENTY, 3, { v: "edited" });
const drop = (table, ...names) => table.map((r) => Object.fromEntries(Object.entries(r).filter(([k]) => !names.includes(k))));

onEach("C39 drop_vs_edit drop: a column dropped here and edited there is a conflict both ways", async (t, engine) => {
  const g = await mounted(t, "drop_vs_edit", engine);
  for (const [target, source] of [
    ["main", "drop"],
    ["drop", "main"],
  ]) {
    const a = await mergeFails(g, target, source, ["ECANCELED", "EOPNOTSUPP"], ["conflict", "refused"]);
    assert.match(a.text, /\bv\b/, "the column is named");
  }
  await checkThenUnmount(g, { main: EDITED, drop: drop(TWENTY, "v") });
});

// The branch gave every row a value of m; row 3 was updated on main, and its new copy has none.
onEach("C12 drop_vs_edit gap: a row that is updated here and has a value in the other side's new column is a conflict", async (t, engine) => {
  const g = withOps(await mounted(t, "drop_vs_edit", engine));
  const all = plus(drop(EDITED, "n"), (r) => ({ m: r.id === 3 ? null : r.id * 10 }));
  for (const line of ["gap", "gap columns=source-wins", "gap schema=source-wins"]) {
    const a = await mergeFails(g, "main", line, "ECANCELED", "conflict");
    assert.equal(a.conflicts, "1");
    assert.match(a.text, /kind: update-column\n.*unit: row 3 of fragment 0\n.*base: live\n.*ours: updated\n.*theirs: .*column m/);
  }
  await checkTip(g, "main", EDITED);
  noted(await merge(g, "main", "gap rows=dest-wins"), "column m", "1 rows");
  await checkTip(g, "main", all);
  await merge(g, "gap", "main", "fast-forward");
  await checkThenUnmount(g, { main: all, gap: all });
});

onEach("C12 drop_vs_edit gap: source-wins takes the update back and keeps every value of the new column", async (t, engine) => {
  const g = await mounted(t, "drop_vs_edit", engine);
  const a = await merge(g, "main", "gap strategy=source-wins");
  assert.match(a.text, /escalated/);
  await checkThenUnmount(g, { main: plus(drop(TWENTY, "n"), (r) => ({ m: r.id * 10 })) });
});

onEach("C12 drop_vs_edit gap the other way round", async (t, engine) => {
  const g = await mounted(t, "drop_vs_edit", engine);
  const all = plus(drop(EDITED, "n"), (r) => ({ m: r.id === 3 ? null : r.id * 10 }));
  noted(await mergeUpdated(g, "gap", "main", [3]), "column m", "1 rows");
  await checkThenUnmount(g, { gap: all, main: EDITED });
});

for (const [adder, other] of [
  ["main", "f"],
  ["f", "main"],
])
  onEach(`${adder} dropped a column, ${other} appended, deleted and updated another one`, async (t, engine) => {
    const g = await twenty(t, engine, "f");
    await g.op(adder, "dropColumns", { names: ["n"] });
    await g.op(other, "add", { rows: rows(50, 2, "o") });
    await g.op(other, "delete", { where: "id = 6" });
    await g.op(other, "update", { where: "id = 12", values: { v: "up" } });
    const all = drop([...changed(without(TWENTY, 6), 12, { v: "up" }), ...rows(50, 2, "o")], "n");
    await merge(g, "main", "f");
    await checkTip(g, "main", all);
    await g.op("main", "add", { rows: drop(rows(70, 1), "n") });
    await merge(g, "f", "main", "fast-forward");
    const next = [...all, ...drop(rows(70, 1), "n")];
    await checkThenUnmount(g, { main: next, f: next });
  });

onEach("both sides dropped the same column; both dropped another one; one dropped what the other keeps", async (t, engine) => {
  const g = await twenty(t, engine, "f", "h");
  await g.op("main", "dropColumns", { names: ["n"] });
  await g.op("f", "dropColumns", { names: ["n"] });
  await g.op("h", "dropColumns", { names: ["v"] });
  await merge(g, "main", "f", ["merged", "empty-merge"]);
  await checkTip(g, "main", drop(TWENTY, "n"));
  await merge(g, "main", "h");
  await checkThenUnmount(g, { main: drop(TWENTY, "n", "v") });
});

onEach("dropped and added again under the same name: the new column, with its values", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  await g.op("f", "dropColumns", { names: ["n"] });
  await g.op("f", "addColumn", { name: "n", sql: "id * 100" });
  await g.op("main", "delete", { where: "id = 4" });
  await merge(g, "main", "f");
  const all = plus(without(TWENTY, 4), (r) => ({ n: r.id * 100 }));
  await checkThenUnmount(g, { main: all });
});

// --- renamed ---

const asText = (table) => table.map(({ v, ...r }) => ({ ...r, text: v }));

onEach("C39 drop_vs_edit rename: the edit follows the field, not the name, both ways", async (t, engine) => {
  const g = await mounted(t, "drop_vs_edit", engine);
  await merge(g, "main", "rename");
  assert.deepEqual(columnNames(g, "main"), ["id", "text", "n"]);
  await checkTip(g, "main", asText(EDITED));
  await merge(g, "rename", "main", "fast-forward");
  await checkThenUnmount(g, { main: asText(EDITED), rename: asText(EDITED) });
});

onEach("renamed here, appended and another column added there; then renamed back", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  await g.op("f", "alter", { path: "v", rename: "text" });
  await addA(g, "main");
  await g.op("main", "add", { rows: plus(rows(50, 1, "m"), A) });
  await merge(g, "f", "main");
  const all = plus([...TWENTY, ...rows(50, 1, "m")], A);
  await checkTip(g, "f", asText(all));
  await g.op("f", "alter", { path: "text", rename: "v" });
  await g.op("f", "delete", { where: "id = 11" });
  await merge(g, "main", "f", "fast-forward");
  await checkThenUnmount(g, { main: without(all, 11), f: without(all, 11) });
});

onEach("renamed alike on both sides merges; renamed otherwise, or to a name that is taken, is a conflict", async (t, engine) => {
  const g = await twenty(t, engine, "f", "h", "k");
  await g.op("main", "alter", { path: "v", rename: "text" });
  await g.op("f", "alter", { path: "v", rename: "text" });
  await g.op("h", "alter", { path: "v", rename: "words" });
  await g.op("k", "addColumn", { name: "text", sql: "n" });
  await merge(g, "main", "f", ["merged", "empty-merge"]);
  for (const [target, source] of [
    ["main", "h"],
    ["h", "main"],
    ["main", "k"],
    ["k", "main"],
  ]) {
    const a = await mergeFails(g, target, source, "ECANCELED", "conflict");
    assert.match(a.text, /column (text|v|words)/, "the column is named");
  }
  await checkThenUnmount(g, { main: asText(TWENTY), h: TWENTY.map(({ v, ...r }) => ({ ...r, words: v })) });
});

onEach("renamed here and dropped there is a conflict, both ways", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  await g.op("main", "alter", { path: "v", rename: "text" });
  await g.op("f", "dropColumns", { names: ["v"] });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await mergeFails(g, "f", "main", "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: asText(TWENTY), f: drop(TWENTY, "v") });
});

// --- types, nullability, metadata of fields ---

const TEN = rows(0, 10).map(({ id, v }) => ({ id, v }));

onEach("C73 field_meta cast: the new type comes with its data, the other side's metadata stays", async (t, engine) => {
  const g = await mounted(t, "field_meta", engine);
  await merge(g, "main", "cast");
  assert.deepEqual(fieldsOf(g), [
    ["id", "int64", false, {}],
    ["v", "string", true, { unit: "main", b: "2" }],
  ]);
  await checkTip(g, "main", TEN);
  await merge(g, "cast", "main", "fast-forward");
  await stock[engine].op(g.ds, "cast", "add", { rows: [{ id: 2 ** 40, v: "big" }] });
  await merge(g, "main", "cast", "fast-forward");
  await checkThenUnmount(g, { main: [...TEN, { id: 2 ** 40, v: "big" }] });
});

for (const [what, op, args] of [
  ["rows of the old type were appended", "add", { rows: [{ id: 50, v: "new" }] }],
  ["rows of the old type were updated", "update", { where: "id = 5", values: { v: "up" } }],
])
  onEach(`C73 field_meta cast after ${what} is refused both ways`, async (t, engine) => {
    const g = withOps(await mounted(t, "field_meta", engine));
    await g.op("main", op, args);
    const all = op === "add" ? [...TEN, { id: 50, v: "new" }] : changed(TEN, 5, { v: "up" });
    for (const [target, source] of [
      ["main", "cast"],
      ["cast", "main"],
    ]) {
      const a = await mergeFails(g, target, source, ["EOPNOTSUPP", "ECANCELED"], ["refused", "conflict"]);
      assert.match(a.text, /\bid\b/, "the column is named");
    }
    await checkThenUnmount(g, { main: all, cast: TEN });
  });

onEach("field_meta cast while rows were deleted on the other side merges both ways", async (t, engine) => {
  const g = withOps(await mounted(t, "field_meta", engine));
  await g.op("main", "delete", { where: "id IN (2, 9)" });
  await merge(g, "cast", "main");
  await checkTip(g, "cast", without(TEN, 2, 9));
  assert.equal(fieldsOf(g, "cast")[0][1], "int64");
  await merge(g, "main", "cast", "fast-forward");
  await checkThenUnmount(g, { main: without(TEN, 2, 9) });
});

onEach("C73 field_meta nullable: merged, with both sides' other attributes", async (t, engine) => {
  const g = withOps(await mounted(t, "field_meta", engine));
  await g.op("nullable", "add", { rows: [{ id: null, v: "none" }] });
  await merge(g, "main", "nullable");
  assert.deepEqual(fieldsOf(g)[0], ["id", "int32", true, {}]);
  assert.deepEqual(fieldsOf(g)[1][3], { unit: "main", b: "2" });
  await checkThenUnmount(g, { main: [...TEN, { id: null, v: "none" }] });
});

onEach("C73 field_meta meta: one key with two values is a conflict, and named", async (t, engine) => {
  const g = await mounted(t, "field_meta", engine);
  for (const [target, source] of [
    ["main", "meta"],
    ["meta", "main"],
  ]) {
    const a = await mergeFails(g, target, source, "ECANCELED", "conflict");
    assert.equal(a.conflicts, "1", "a and b are no conflict");
    assert.match(a.text, /unit/);
  }
  assert.deepEqual(fieldsOf(g)[1][3], { unit: "main", b: "2" });
  await checkThenUnmount(g, { main: TEN, meta: TEN });
});

onEach("field metadata by key: set, changed alike, removed", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  const set = (branch, metadata) => g.op(branch, "fieldMetadata", { path: "v", metadata });
  await set("main", { keep: "0", gone: "0", both: "0" });
  await merge(g, "f", "main", "fast-forward");
  await set("main", { gone: null, both: "1", mine: "m" });
  await set("f", { both: "1", theirs: "t" });
  await merge(g, "main", "f");
  assert.deepEqual(fieldsOf(g)[1][3], { keep: "0", both: "1", mine: "m", theirs: "t" });
  await merge(g, "f", "main", "fast-forward");
  assert.deepEqual(fieldsOf(g, "f")[1][3], { keep: "0", both: "1", mine: "m", theirs: "t" });
  await checkThenUnmount(g, { main: TWENTY, f: TWENTY });
});

// --- indexes ---

onEach("an index on a column that the other side drops or retypes goes with it; others stay", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 300));
  await g.op("main", "index", { column: "n" });
  await g.op("main", "index", { column: "id" });
  await g.fork("f", "h");
  await g.op("f", "dropColumns", { names: ["n"] });
  await g.op("h", "dropIndex", { name: "n_idx" }); // stock retypes no column that has an index
  await g.op("h", "alter", { path: "n", type: "Float32" });
  await g.op("main", "delete", { where: "id = 7" });
  const indices = () => load(g.ds).indices.map((i) => i.name).sort();
  assert.deepEqual(indices(), ["id_idx", "n_idx"]);
  await merge(g, "main", "h");
  assert.deepEqual(indices(), ["id_idx"]);
  await checkTip(g, "main", without(rows(0, 300), 7));
  await g.op("main", "index", { column: "n" });
  await mergeFails(g, "f", "main@5", "ECANCELED", "conflict"); // h's new type is there already
  await mergeFails(g, "h", "f", "ECANCELED", "conflict");
  await merge(g, "f", "main@4");
  assert.deepEqual(load(g.storage("f")).indices.map((i) => i.name), ["id_idx"]);
  await checkTip(g, "f", drop(without(rows(0, 300), 7), "n"));
  await checkThenUnmount(g, { main: without(rows(0, 300), 7) });
});

onEach("an index of the target on a column that it renamed meanwhile finds the rows", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 300));
  await g.op("main", "index", { column: "n" });
  await g.fork("f");
  await g.op("f", "alter", { path: "n", rename: "number" });
  await g.op("main", "add", { rows: rows(500, 5, "m") });
  await g.op("f", "delete", { where: "id < 5" });
  await merge(g, "main", "f");
  const all = [...without(rows(0, 300), span(0, 4)), ...rows(500, 5, "m")].map(({ n, ...r }) => ({ ...r, number: n }));
  await checkThenUnmount(g, { main: all });
});

const nested = (i) => ({
  id: i,
  p: struct({ x: i, y: struct({ z: `z${i}` }) }),
  tags: [`a${i}`, "b"],
  vector: Array.from({ length: 8 }, (_, k) => Math.fround(Math.sin(i * 7 + k))),
});
const SIX_HUNDRED = span(0, 599).map(nested);

onEach("C71 nested_types: struct, list and vector columns, an index, a column added on the branch", async (t, engine) => {
  const g = withOps(await mounted(t, "nested_types", engine));
  const all = [
    ...plus([...SIX_HUNDRED.slice(3), nested(1000), nested(1001)], (r) => ({ dbl: r.id * 2 })),
    { ...nested(2000), dbl: null },
  ];
  assert.equal(all.length, 600);
  await checkTip(g, "main", [...SIX_HUNDRED, nested(2000)]);
  noted(await merge(g, "main", "feature"), "column dbl", "1 rows");
  await checkTip(g, "main", all);
  for (const e of ENGINES)
    for (const i of [5, 599, 1001, 2000])
      assert.deepEqual(
        (await g.op("main", "search", { vector: nested(i).vector, limit: 1 }, e)).value,
        [i],
        `the row nearest to the vector of row ${i}, by ${e}`,
      );
  await merge(g, "feature", "main", "fast-forward");
  await g.op("feature", "dropColumns", { names: ["p.y"] });
  await g.op("main", "delete", { where: "id = 10" });
  await merge(g, "main", "feature");
  const next = without(all, 10).map((r) => ({ ...r, p: struct({ x: r.id }) }));
  await checkThenUnmount(g, { main: next });
});

// --- stock life afterwards ---

for (const worker of ENGINES)
  onEach(`a tip with the columns of both sides goes on in ${worker}`, async (t, engine) => {
    const g = await twenty(t, engine, "f");
    await addA(g, "main");
    await addB(g, "f");
    await g.op("f", "add", { rows: plus(rows(100, 3, "f"), () => ({ b: 5 })) });
    await g.op("main", "update", { where: "id = 1", values: { v: "up" } });
    await mergeUpdated(g, "main", "f", [1]);
    let all = [
      ...changed(plus(plus(TWENTY, A), B), 1, { v: "up", b: null }),
      ...plus(rows(100, 3, "f"), () => ({ a: null, b: 5 })),
    ];
    const step = async (op, args, next = all) => {
      await g.op("main", op, args, worker);
      all = next;
      await checkTip(g, "main", all, { view: false });
    };
    const fresh = plus(rows(300, 2, "x"), () => ({ a: 1, b: 2 }));
    await step("add", { rows: fresh }, [...all, ...fresh]);
    await step("update", { where: "id IN (2, 101)", values: { b: 9 } }, changed(all, [2, 101], { b: 9 }));
    await step("addColumn", { name: "c", sql: "id + 1" }, plus(all, (r) => ({ c: r.id + 1 })));
    await step("index", { column: "b" });
    await step("delete", { where: "id IN (3, 102)" }, without(all, 3, 102));
    await step("optimize", {});
    await step("dropColumns", { names: ["a"] }, drop(all, "a"));
    await step("clean", {});
    await merge(g, "f", "main", "fast-forward");
    await g.op("f", "add", { rows: rows(400, 1, "f").map((r) => ({ ...r, b: 6, c: 7 })) }, worker);
    await g.op("main", "delete", { where: "id = 300" }, worker);
    all = [...without(all, 300), ...rows(400, 1, "f").map((r) => ({ ...r, b: 6, c: 7 }))];
    await merge(g, "main", "f");
    await checkThenUnmount(g, { main: all });
  });

onEach("the target compacted after columns were renumbered: the next merge is right, or refused", async (t, engine) => {
  const g = await twenty(t, engine, "f");
  await addA(g, "main");
  await addB(g, "f");
  await merge(g, "main", "f");
  await g.op("main", "optimize");
  await g.op("f", "add", { rows: plus(rows(100, 1, "f"), () => ({ b: 5 })) });
  const before = plus(plus(TWENTY, A), B),
    all = [...before, ...plus(rows(100, 1, "f"), () => ({ a: null, b: 5 }))];
  const done = await mergesOrRefuses(g, "main", "f", all);
  await checkThenUnmount(g, { main: done === "merged" ? all : before });
});
