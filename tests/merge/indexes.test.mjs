// SPDX-License-Identifier: Apache-2.0
// Indexes in merges (merge-semantics section 7): what comes along, what stays behind, and that a filter through an index
// finds what a scan finds, in both engines.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { changed, rows, span, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mounted, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, scratch, withOps } from "../harness/verbs.mjs";
import { mount } from "../harness/mount.mjs";
import { stock } from "../harness/stock.mjs";
import { ENGINES, place, workspace } from "../harness/workspace.mjs";

const names = (g, branch = "main") => [...new Set(load(g.storage(branch)).indices.map((i) => i.name))].sort();
const coverage = async (g, name, branch = "main") => (await g.op(branch, "coverage", { name })).value;
const noted = (answer, ...words) => {
  const line = answer.text.split("\n").find((l) => words.every((w) => l.includes(w)));
  assert.ok(line, `a note with ${words}: ${answer.text}`);
};
const inOwnStorage = (g, branch = "main") => {
  for (const i of load(g.storage(branch)).indices) assert.equal(i.base, undefined, `${i.name} lies in the target's own storage`);
};

// Two fragments of 300 rows.
const SIX = rows(0, 600);
const sixHundred = (t, engine) => scratch(t, engine, rows(0, 300), rows(300, 300));

for (const mode of ["graft", "link", "copy"])
  onEach(`an index over base fragments comes along, by ${mode}; rows that came since are searched`, async (t, engine) => {
    const g = await sixHundred(t, engine);
    await g.fork("f");
    await g.op("f", "index", { column: "id" });
    await g.op("f", "index", { column: "v", kind: "bitmap" });
    await g.op("f", "delete", { where: "id < 3" });
    await g.op("f", "add", { rows: rows(900, 4, "f") });
    await g.op("main", "add", { rows: rows(700, 5, "m") });
    await g.op("main", "update", { where: "id = 10", values: { v: "up" } });
    const all = [...changed(without(SIX, 0, 1, 2), 10, { v: "up" }), ...rows(900, 4, "f"), ...rows(700, 5, "m")];
    await merge(g, "main", `f mode=${mode}`);
    assert.deepEqual(names(g), ["id_idx", "v_idx"]);
    inOwnStorage(g);
    assert.deepEqual(await coverage(g, "id_idx"), [596, 10]); // 600 less 3 deleted and 1 updated; 4, 5 and 1 new ones
    await checkTip(g, "main", all);
    for (const e of ENGINES) {
      await g.op("main", "delete", { where: `id = ${e === "lance10" ? 20 : 21}` }, e);
      await g.op("main", "update", { where: "v = 'm700'", values: { n: 1 } }, e);
    }
    const next = changed(without(all, 20, 21), 700, { n: 1 });
    await checkTip(g, "main", next);
    await g.op("main", "optimize");
    await g.op("f", "clean");
    await g.op("main", "clean");
    await checkThenUnmount(g, { main: next });
  });

onEach("an index that covers rows which get another fragment id stays behind, and is noted", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(900, 300, "f") });
  await g.op("f", "index", { column: "id" });
  await g.op("main", "add", { rows: rows(700, 300, "m") }); // the same fragment id
  const all = [...SIX, ...rows(900, 300, "f"), ...rows(700, 300, "m").slice(0, 200)];
  await g.op("main", "delete", { where: "id >= 900" });
  noted(await merge(g, "main", "f"), "index id_idx of f", "rebuild");
  assert.deepEqual(names(g), []);
  await checkThenUnmount(g, { main: all });
});

onEach("an index that a merge left out was dropped by nobody: no conflict later, and a real drop still is one", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(900, 300, "f") });
  await g.op("f", "index", { column: "id" });
  await g.op("main", "add", { rows: rows(1300, 300, "m") }); // the same fragment id
  noted(await merge(g, "main", "f"), "index id_idx of f", "rebuild");
  await g.op("f", "index", { column: "id" }); // built anew
  await g.op("f", "add", { rows: rows(2000, 2, "f") });
  noted(await merge(g, "main", "f"), "index id_idx of f", "rebuild");
  const all = [...SIX, ...rows(900, 300, "f"), ...rows(1300, 300, "m"), ...rows(2000, 2, "f")];
  await checkTip(g, "main", all);
  await g.op("main", "index", { column: "id" });
  await merge(g, "f", "main", "fast-forward");
  await g.op("main", "dropIndex", { name: "id_idx" });
  await g.op("f", "index", { column: "id" });
  assert.match((await mergeFails(g, "main", "f", "ECANCELED", "conflict")).text, /kind: index/);
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("a branch that left an index out by a merge does not take it from where it came", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.fork("f");
  await g.op("main", "add", { rows: rows(900, 300, "m") });
  await g.op("main", "index", { column: "id" });
  await g.op("f", "add", { rows: rows(1300, 300, "f") }); // the same fragment id
  noted(await merge(g, "f", "main"), "index id_idx of main", "rebuild");
  await merge(g, "main", "f", "fast-forward");
  assert.deepEqual(await coverage(g, "id_idx"), [900, 300]);
  const all = [...SIX, ...rows(900, 300, "m"), ...rows(1300, 300, "f")];
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("a fast-forward carries every index, new fragments and all", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(900, 300, "f") });
  await g.op("f", "index", { column: "id" });
  await merge(g, "main", "f", "fast-forward");
  inOwnStorage(g);
  assert.deepEqual(await coverage(g, "id_idx"), [900, 0]);
  await checkThenUnmount(g, { main: [...SIX, ...rows(900, 300, "f")] });
});

onEach("only an index came: CreateIndex, and stock writers that race with it rebase", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.fork("f");
  await g.op("f", "index", { column: "id" });
  await g.op("main", "delete", { where: "id = 599" });
  await merge(g, "main", "f");
  assert.equal(load(g.ds).transaction.op, "create_index");
  assert.deepEqual(await coverage(g, "id_idx"), [599, 0]);
  await g.op("f", "dropIndex", { name: "id_idx" });
  await merge(g, "main", "f");
  assert.equal(load(g.ds).transaction.op, "create_index");
  assert.deepEqual(names(g), [], "removed on one side, untouched on the other");
  await checkThenUnmount(g, { main: without(SIX, 599) });
});

onEach("one name: the same index on both sides stays ours; another kind or column is a conflict", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.op("main", "index", { column: "n", name: "third" });
  await g.fork("f");
  await g.op("main", "index", { column: "id" });
  await g.op("f", "index", { column: "id" });
  const [mine] = load(g.ds).indices.filter((i) => i.name === "id_idx");
  await merge(g, "main", "f", "empty-merge");
  assert.deepEqual(load(g.ds).indices.filter((i) => i.name === "id_idx"), [mine]);
  await g.op("main", "index", { column: "v", kind: "btree", name: "second" });
  await g.op("f", "index", { column: "v", kind: "bitmap", name: "second" });
  await g.op("f", "dropIndex", { name: "third" });
  await g.op("f", "index", { column: "id", name: "third" });
  await g.op("main", "dropIndex", { name: "third" });
  const { text } = await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  for (const part of ["unit: index second", "unit: index third", "conflicts: 2", "ours: (absent)", "on id", "on n", "on v"])
    assert.ok(text.includes(part), `${part}: ${text}`);
  assert.ok(/BTree/.test(text) && /Bitmap/.test(text), text);
  await merge(g, "main", "f strategy=dest-wins", "empty-merge");
  assert.deepEqual(names(g), ["id_idx", "second"]);
  await g.op("f", "index", { column: "v", kind: "bitmap", name: "second" });
  await g.op("main", "index", { column: "v", kind: "btree", name: "second" });
  await merge(g, "main", "f indexes=source-wins");
  assert.deepEqual(names(g), ["id_idx", "second"]);
  const kinds = load(g.ds).indices.filter((i) => i.name === "second").map((i) => i.uuid);
  assert.deepEqual(kinds, load(g.storage("f")).indices.filter((i) => i.name === "second").map((i) => i.uuid));
  await checkThenUnmount(g, { main: SIX });
});

onEach("a compaction beside an index, both ways: filters right, the index gone or cut", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.fork("f", "h");
  await g.op("f", "index", { column: "id" });
  await g.op("main", "optimize");
  await g.op("main", "delete", { where: "id = 5" });
  noted(await merge(g, "main", "f", "empty-merge"), "index id_idx of f", "rebuild"); // nothing that it covers is left
  assert.deepEqual(names(g), []);
  await g.op("h", "optimize");
  await g.op("f", "delete", { where: "id = 6" });
  await merge(g, "f", "h", "empty-merge"); // h's compaction is left out
  assert.deepEqual(names(g, "f"), ["id_idx"]);
  await checkThenUnmount(g, { main: without(SIX, 5), f: without(SIX, 6) });
});

onEach("segments: one over new rows stays behind, the others go on", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.op("main", "index", { column: "id" });
  await g.fork("f");
  await g.op("f", "add", { rows: rows(900, 300, "f") });
  await g.op("f", "optimize"); // extends the index by the new rows, by a segment or anew
  await g.op("main", "add", { rows: rows(700, 100, "m") });
  await merge(g, "main", "f");
  assert.deepEqual(names(g), ["id_idx"]);
  await checkTip(g, "main", [...SIX, ...rows(700, 100, "m"), ...rows(900, 300, "f")]);
  await g.op("main", "optimize");
  await checkThenUnmount(g, { main: [...SIX, ...rows(700, 100, "m"), ...rows(900, 300, "f")] });
});

onEach("a column that one side dropped and the other indexed: a conflict, for the strategies to settle", async (t, engine) => {
  const g = await sixHundred(t, engine);
  await g.op("main", "index", { column: "v" });
  await g.fork("f", "h", "k");
  await g.op("f", "dropColumns", { names: ["n"] });
  await g.op("main", "index", { column: "n" });
  assert.match((await mergeFails(g, "main", "f", "ECANCELED", "conflict")).text, /unit: column n/);
  assert.match((await mergeFails(g, "f", "main", "ECANCELED", "conflict")).text, /unit: column n/);
  await merge(g, "main", "f strategy=dest-wins", "empty-merge");
  assert.deepEqual(names(g), ["n_idx", "v_idx"]);
  await checkTip(g, "main", SIX);
  await g.op("h", "index", { column: "n" });
  noted(await merge(g, "h", "f indexes=source-wins"), "index n_idx is dropped");
  await g.op("k", "dropColumns", { names: ["v"] }); // the index was there before: it goes with the column
  noted(await merge(g, "main", "k"), "index v_idx is dropped");
  assert.deepEqual(names(g), ["n_idx"]);
  assert.deepEqual(names(g, "h"), ["v_idx"]);
  const drop = (c) => SIX.map((r) => Object.fromEntries(Object.entries(r).filter(([k]) => k !== c)));
  await checkThenUnmount(g, { main: drop("v"), h: drop("n") });
});

// --- other kinds: a search must find each row once, and where it is now ---

const wordy = (i) => ({
  id: i,
  text: `word${i} ${i % 2 ? "odd" : "even"}`,
  vector: Array.from({ length: 8 }, (_, k) => Math.fround(Math.sin(i * 7 + k))),
});
async function searches(g, branch, ids, { words = true } = {}) {
  for (const e of ENGINES) {
    const found = (await g.op(branch, "search", { vector: wordy(ids[0]).vector, limit: 10000 }, e)).value;
    assert.deepEqual([...found].sort((a, b) => a - b), [...ids].sort((a, b) => a - b), `each row once, by ${e}`);
    for (const i of [ids[0], ids[ids.length >> 1], ids.at(-1)]) {
      assert.deepEqual((await g.op(branch, "search", { vector: wordy(i).vector, limit: 1 }, e)).value, [i], `nearest, by ${e}`);
      if (words)
        assert.deepEqual((await g.op(branch, "words", { column: "text", text: `word${i}` }, e)).value, [i], `word, by ${e}`);
    }
    if (!words) continue;
    assert.deepEqual(
      (await g.op(branch, "words", { column: "text", text: "odd" }, e)).value,
      ids.filter((i) => i % 2).sort((a, b) => a - b),
      `words, by ${e}`,
    );
  }
}
async function stableScratch(t, engine, first, ...more) {
  const w = workspace(t),
    root = path.join(w.dir, "data"),
    g = { w, engine, ...place(path.join(root, "t.lance"), root) };
  fs.mkdirSync(root);
  await stock[engine].create(g.ds, first, { new_table_enable_stable_row_ids: "true" });
  for (const lot of more) await stock[engine].op(g.ds, "main", "add", { rows: lot });
  return withOps({ ...g, m: await mount(w, g.ds) });
}
for (const stable of [false, true])
  onEach(`vector and full-text indexes of the source${stable ? ", stable row ids" : ""}`, async (t, engine) => {
    const lots = [span(0, 299).map(wordy), span(300, 599).map(wordy)],
      g = stable ? await stableScratch(t, engine, ...lots) : await scratch(t, engine, ...lots);
    await g.fork("f");
    await g.op("f", "index", { column: "vector", kind: "ivfFlat", options: { numPartitions: 2 } });
    await g.op("f", "index", { column: "text", kind: "fts" });
    await g.op("f", "add", { rows: span(900, 930).map(wordy) });
    await g.op("f", "delete", { where: "id IN (4, 305)" });
    // With stable row ids an update extends the coverage of other columns' indexes by its new fragment.
    if (!stable) await g.op("f", "update", { where: "id = 8", values: { text: "word8 even again" } });
    await g.op("main", "add", { rows: span(700, 750).map(wordy) });
    await g.op("main", "delete", { where: "id IN (5, 306)" });
    if (!stable) await g.op("main", "update", { where: "id = 9", values: { text: "word9 odd again" } });
    await merge(g, "main", "f");
    assert.deepEqual(names(g), ["text_idx", "vector_idx"]);
    assert.deepEqual(await coverage(g, "vector_idx"), stable ? [596, 82] : [594, 84]); // less 4 deleted and those updated; 31 + 51 and those new
    const ids = [...span(0, 599), ...span(700, 750), ...span(900, 930)].filter((i) => ![4, 305, 5, 306].includes(i));
    await searches(g, "main", ids);
    await g.op("main", "delete", { where: "id = 599" });
    await searches(g, "main", ids.filter((i) => i !== 599));
    await g.op("main", "optimize");
    await searches(g, "main", ids.filter((i) => i !== 599));
    await g.m.unmount();
  });

onEach("stable row ids: a search index does not outlive rows that the other side moved", async (t, engine) => {
  const lots = [span(0, 299).map(wordy), span(300, 599).map(wordy)],
    g = await stableScratch(t, engine, ...lots),
    ids = span(0, 599);
  await g.op("main", "index", { column: "id" });
  await g.op("main", "index", { column: "vector", kind: "ivfFlat", options: { numPartitions: 2 } });
  await g.fork("f", "h");
  await g.op("h", "index", { column: "text", kind: "fts" });
  await g.op("f", "update", { where: "id IN (8, 308)", values: { text: "word8 even again" } });
  await g.op("main", "delete", { where: "id = 20" });
  noted(await merge(g, "main", "f"), "index vector_idx", "rebuild");
  await g.op("main", "update", { where: "id = 308", values: { text: "word308 even again" } });
  await searches(g, "main", without(ids.map((id) => ({ id })), 20).map((r) => r.id), { words: false });
  noted(await merge(g, "main", "h", "empty-merge"), "index text_idx of h", "rebuild");
  assert.deepEqual(names(g), ["id_idx"]);
  for (const e of ENGINES) assert.equal((await g.op("main", "count", { where: "id IN (8, 308, 20, 30)" }, e)).value, 3);
  // A compaction that comes by the merge moves all rows.
  await g.fork("k");
  await g.op("main", "index", { column: "vector", kind: "ivfFlat", options: { numPartitions: 2 } });
  await g.op("k", "optimize");
  await merge(g, "main", "k");
  await searches(g, "main", without(ids.map((id) => ({ id })), 20).map((r) => r.id), { words: false });
  await g.m.unmount();
});

// --- indexes that were inherited through forks ---

const CHILD = [...changed(rows(0, 1000), span(0, 4), { n: -1 }), ...rows(5000, 10, "f"), ...rows(6000, 3, "c")];
onEach("C15 an index inherited through two forks never names a base without its files", async (t, engine) => {
  const g = withOps(await mounted(t, "index_on_branch", engine));
  await merge(g, "feature", "feature/child", "fast-forward");
  await checkTip(g, "feature", CHILD);
  await merge(g, "main", "feature");
  const all = [...CHILD, ...rows(2000, 10, "m")];
  await checkTip(g, "main", all);
  assert.deepEqual(names(g), ["id_idx", "n_idx"]);
  inOwnStorage(g);
  await merge(g, "main", "feature/child", ["up-to-date", "empty-merge"]);
  await merge(g, "feature/child", "main", "fast-forward");
  await checkTip(g, "feature/child", all); // stock alone cannot filter there: its entry names the wrong base
  await g.op("main", "drop", { name: "feature/child" });
  await checkThenUnmount(g, { main: all, feature: CHILD });
});

onEach("C15 clones: a branch of a clone, whose index lies in the original outside", async (t, engine) => {
  const g = withOps(await mounted(t, "clones", engine, { generated: { name: "ib" } }));
  await g.op("feature", "add", { rows: rows(2000, 2, "f") });
  await g.op("main", "add", { rows: rows(1000, 3, "m") });
  const all = [...rows(0, 300), ...rows(2000, 2, "f"), ...rows(1000, 3, "m")];
  await merge(g, "main", "feature");
  await checkTip(g, "main", all);
  await merge(g, "feature", "main", "fast-forward");
  assert.deepEqual(names(g, "feature"), ["id_idx"]);
  await checkThenUnmount(g, { main: all, feature: all });
});
