// SPDX-License-Identifier: Apache-2.0
// Stable row ids: what a row was called before a merge it is called after it, no two rows are called the same, and a filter
// gives the ids that a scan gives (merge-semantics section 6).
import assert from "node:assert/strict";
import { changed, rows, without } from "../harness/rows.mjs";
import { kept, rowIds } from "../harness/row_ids.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, checkTip, mounted, onEach } from "../harness/tip.mjs";
import { merge, withOps } from "../harness/verbs.mjs";

const open = async (t, engine) => withOps(await mounted(t, "stable_row_ids", engine));
const MAIN = [...changed(rows(0, 10), 5, { v: "mm" }), ...rows(200, 4, "m")];
const ALL = [...without(changed(MAIN, 2, { v: "ff" }), 9), ...rows(100, 3, "f")];

onEach("C35 stable_row_ids: ids stay, no two rows have one, filters and scans agree", async (t, engine) => {
  const g = await open(t, engine);
  const before = await rowIds(g, "main", MAIN);
  await merge(g, "main", "feature");
  await checkTip(g, "main", ALL);
  const merged = await rowIds(g, "main", ALL);
  kept(before, merged, "ids that main had given stay, that of the row that feature updated too");

  await g.op("main", "delete", { where: "id = 100" });
  const next = without(ALL, 100);
  assert.equal(next.length, 15);
  kept(merged, await rowIds(g, "main", next), "after a delete");
  await g.op("main", "index", { column: "id" });
  kept(merged, await rowIds(g, "main", next), "through an index");
  await g.op("main", "optimize");
  kept(merged, await rowIds(g, "main", next), "after a compaction");
  await checkThenUnmount(g, { main: next });
});

// A restore takes the next row id back, and stock gives the same ids out again to other rows.
onEach("C35 stable_row_ids: ids that an abandoned version had given", async (t, engine) => {
  const g = await open(t, engine);
  const first = (await stock[engine].op(g.ds, "feature", "version")).version - 3; // it made three commits
  await g.op("feature", "restore", { version: first });
  const row = { id: 800, v: "again", n: 800 };
  await g.op("feature", "add", { rows: [row] });
  await checkTip(g, "feature", [...rows(0, 10), row]);
  const before = await rowIds(g, "main", MAIN);
  await merge(g, "main", "feature");
  const all = [...MAIN, row];
  await checkTip(g, "main", all);
  kept(before, await rowIds(g, "main", all), "ids that main had given stay");
  await g.op("main", "update", { where: "id IN (800, 200)", values: { v: "later" } });
  await g.op("main", "optimize");
  const last = changed(all, [200, 800], { v: "later" });
  await rowIds(g, "main", last);
  await checkThenUnmount(g, { main: last });
});

// The other side's rows are found through the ids of the base, though no fragment of it stands here any more.
onEach("C35 stable_row_ids: an update keeps its row's id where this side has compacted since", async (t, engine) => {
  const g = await open(t, engine);
  const before = await rowIds(g, "main", MAIN);
  await g.op("main", "optimize");
  kept(before, await rowIds(g, "main", MAIN), "a compaction");
  await merge(g, "main", "feature");
  await checkTip(g, "main", ALL);
  kept(before, await rowIds(g, "main", ALL), "what feature updated, deleted and appended");
  await checkThenUnmount(g, { main: ALL });
});

onEach("C35 stable_row_ids: the same with a base on this side's own line, whose ids the source knows by others", async (t, engine) => {
  const g = await open(t, engine);
  await merge(g, "feature", "main");
  await g.op("feature", "update", { where: "id IN (3, 201)", values: { v: "later" } });
  const before = await rowIds(g, "main", MAIN);
  await g.op("main", "optimize");
  await merge(g, "main", "feature");
  const all = changed(ALL, [3, 201], { v: "later" });
  await checkTip(g, "main", all);
  kept(before, await rowIds(g, "main", all), "rows that feature updated keep the ids that main gave them");
  await checkThenUnmount(g, { main: all });
});

// The rows of a restored table are the ones that they were, though no fragment of them stands here any more.
onEach("C35 stable_row_ids: a restore that is taken as a whole brings rows back under their ids", async (t, engine) => {
  const g = await open(t, engine);
  const before = await rowIds(g, "main", MAIN);
  const version = Number((await g.op("main", "version")).version);
  await g.op("main", "fork", { name: "tidy", from: "main" });
  await g.op("tidy", "optimize");
  kept(before, await rowIds(g, "tidy", MAIN), "a compaction");
  await g.op("main", "delete", { where: "id > 3" });
  await g.op("main", "restore", { version: version - 2 });
  const restored = rows(0, 10);
  await checkTip(g, "main", restored);
  await merge(g, "tidy", "main");
  await checkTip(g, "tidy", restored);
  kept(before, await rowIds(g, "tidy", restored), "rows that were there all along");
  await checkThenUnmount(g, { tidy: restored, main: restored });
});
