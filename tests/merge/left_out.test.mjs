// SPDX-License-Identifier: Apache-2.0
// A compaction that a merge left out (merge-semantics section 5, s2): the target keeps the fragments of before, the source
// has others, and what happens to either since must arrive on the other side all the same, in both directions.
import assert from "node:assert/strict";
import { tip } from "../interop/manifest.mjs";
import { kept, rowIds } from "../harness/row_ids.mjs";
import { changed, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mergesOrRefuses, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, pickFails, scratch, scratchWith } from "../harness/verbs.mjs";

// --- a compaction that a merge left out, and what happens to its fragments after it ---

// main deleted 7; f deleted 5, compacted, and was merged: main keeps its own fragments.
const STABLE = { new_table_enable_stable_row_ids: "true" };
async function leftOut(t, engine, options = {}) {
  const g = await scratchWith(options, t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "optimize");
  await g.op("main", "delete", { where: "id = 7" });
  const a = await merge(g, "main", "f");
  assert.match(a.text, /a compaction of f is left out/);
  await checkTip(g, "main", without(rows(0, 20), 5, 7));
  return g;
}

onEach("rows deleted on the source after its compaction was left out arrive all the same, and do not come back", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "delete", { where: "id = 6" });
  await merge(g, "main", "f");
  await checkTip(g, "main", without(rows(0, 20), 5, 6, 7));
  await g.op("f", "delete", { where: "id = 9" });
  await g.op("main", "delete", { where: "id = 10" });
  await merge(g, "main", "f");
  const all = without(rows(0, 20), 5, 6, 7, 9, 10);
  await checkTip(g, "main", all);
  await merge(g, "f", "main", ["merged", "fast-forward"]);
  await checkTip(g, "f", all);
  await g.op("f", "update", { where: "id = 8", values: { v: "up" } });
  await merge(g, "main", "f", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { main: changed(all, 8, { v: "up" }), f: changed(all, 8, { v: "up" }) });
});

onEach("left out, and the same with an older base named by hand", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "delete", { where: "id = 6" });
  await merge(g, "main", "f base=main@2");
  await checkThenUnmount(g, { main: without(rows(0, 20), 5, 6, 7), f: without(rows(0, 20), 5, 6) });
});

onEach("rows updated on the source after its compaction was left out arrive, and so on through a second one", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "update", { where: "id = 8", values: { v: "up" } });
  await g.op("f", "optimize"); // the compacted fragment goes into another one
  await g.op("f", "delete", { where: "id = 9" });
  await g.op("main", "delete", { where: "id = 10" });
  const first = changed(without(rows(0, 20), 5, 7, 9, 10), 8, { v: "up" });
  const done = await mergesOrRefuses(g, "main", "f", first);
  t.diagnostic(`first: ${done}`);
  await g.op("f", "optimize");
  await g.op("f", "delete", { where: "id = 12" });
  t.diagnostic(`second: ${await mergesOrRefuses(g, "main", "f", without(first, 12))}`);
  await checkThenUnmount(g, { f: changed(without(rows(0, 20), 5, 9, 12), 8, { v: "up" }) });
});

onEach("rows that came with the left out compaction, and went again on the target, stay away", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "optimize");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("main", "delete", { where: "id = 7" });
  await merge(g, "main", "f");
  await g.op("main", "delete", { where: "id = 100" });
  await g.op("main", "update", { where: "id = 101", values: { v: "mine" } });
  await g.op("f", "delete", { where: "id = 6" });
  await merge(g, "main", "f");
  const all = [...without(rows(0, 20), 5, 6, 7), ...changed(rows(101, 1, "f"), 101, { v: "mine" })];
  await checkThenUnmount(g, { main: all });
});

onEach("a row that both sides change after a compaction was left out is a conflict, not a silent choice", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "delete", { where: "id = 6" });
  await g.op("main", "update", { where: "id = 6", values: { v: "mine" } });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: changed(without(rows(0, 20), 5, 7), 6, { v: "mine" }) });
});

onEach("left out, and the target compacts its own fragments: right rows or a refusal, both ways, again", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("main", "optimize");
  await g.op("f", "delete", { where: "id IN (6, 19)" });
  await g.op("main", "delete", { where: "id = 11" });
  let all = without(rows(0, 20), 5, 6, 7, 11, 19);
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  all = [...all, ...rows(100, 2, "f")];
  await merge(g, "f", "main", ["merged", "fast-forward"]);
  await checkTip(g, "f", all);
  await merge(g, "main", "f", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("left out, and the source's versions of before it cleaned away: right rows or a refusal", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "clean");
  await g.op("f", "delete", { where: "id = 6" });
  t.diagnostic(await mergesOrRefuses(g, "main", "f", without(rows(0, 20), 5, 6, 7)));
  await g.m.unmount();
});

// main comes to f, which has the compaction and changed what it made.
onEach("the other way: the side that compacted takes the other one in, after changes on both", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "delete", { where: "id = 6" });
  await g.op("f", "update", { where: "id = 8", values: { v: "up" } });
  await g.op("main", "delete", { where: "id = 11" });
  await g.op("main", "update", { where: "id = 12", values: { v: "mine" } });
  await g.op("main", "add", { rows: rows(100, 2, "m") });
  let all = [...changed(changed(without(rows(0, 20), 5, 6, 7, 11), 8, { v: "up" }), 12, { v: "mine" }), ...rows(100, 2, "m")];
  await merge(g, "f", "main");
  await checkTip(g, "f", all);
  await g.op("f", "delete", { where: "id IN (13, 100)" });
  await g.op("main", "delete", { where: "id IN (14, 101)" });
  all = without(all, 13, 14, 100, 101);
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  await merge(g, "f", "main", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("the other way: a row that both changed since is a conflict, and each strategy gives its side's row", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "delete", { where: "id = 6" });
  await g.op("main", "update", { where: "id = 6", values: { v: "mine" } });
  const a = await mergeFails(g, "f", "main", "ECANCELED", "conflict");
  assert.match(a.text, /kind: delete-update/);
  await g.op("f", "fork", { name: "h", from: "f" });
  await merge(g, "f", "main rows=source-wins");
  await checkTip(g, "f", changed(without(rows(0, 20), 5, 7), 6, { v: "mine" }));
  await merge(g, "h", "main rows=dest-wins");
  await checkThenUnmount(g, { h: without(rows(0, 20), 5, 6, 7), f: changed(without(rows(0, 20), 5, 7), 6, { v: "mine" }) });
});

onEach("the other way, by a second compaction on the source of it", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.op("f", "update", { where: "id = 8", values: { v: "up" } });
  await g.op("f", "optimize");
  await g.op("f", "delete", { where: "id = 9" });
  await g.op("main", "delete", { where: "id = 10" });
  const all = changed(without(rows(0, 20), 5, 7, 9, 10), 8, { v: "up" });
  await merge(g, "f", "main");
  await checkTip(g, "f", all);
  await merge(g, "main", "f", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { main: all, f: all });
});

// --- picks ---

onEach("a commit on compacted rows is picked where the compaction is not: that commit's rows, and no others", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.fork("h");
  await g.op("f", "delete", { where: "id = 9" });
  await g.op("f", "delete", { where: "id = 6" });
  await pick(g, "h", "f");
  await checkTip(g, "h", without(rows(0, 20), 5, 6, 7));
  await pick(g, "h", "f", "up-to-date");
  await merge(g, "h", "f"); // what was picked is there already
  await checkTip(g, "h", without(rows(0, 20), 5, 6, 7, 9));
  await g.op("f", "update", { where: "id = 8", values: { v: "up" } });
  await g.fork("k");
  await pick(g, "k", "f");
  await checkTip(g, "k", changed(without(rows(0, 20), 5, 7), 8, { v: "up" }));
  // Which of f's commits took away a row that a compaction had moved nobody tells: a conflict out of caution.
  const all = changed(without(rows(0, 20), 5, 6, 7, 9), 8, { v: "up" });
  t.diagnostic(`the whole branch behind a picked update: ${await mergesOrRefuses(g, "k", "f", all)}`);
  await g.m.unmount();
});

onEach("picked where no merge ever was: a commit from behind a compaction on a branch that never saw it", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "optimize");
  await g.op("f", "delete", { where: "id IN (6, 15)" });
  await g.op("main", "delete", { where: "id = 7" });
  await pick(g, "main", "f");
  await checkTip(g, "main", without(rows(0, 20), 6, 7, 15));
  await merge(g, "main", "f", ["merged", "empty-merge"]);
  await checkThenUnmount(g, { main: without(rows(0, 20), 6, 7, 15) });
});

onEach("a picked row that the target changed is a conflict; an append from behind the compaction is picked", async (t, engine) => {
  const g = await leftOut(t, engine);
  await g.fork("h");
  await g.op("h", "update", { where: "id = 6", values: { v: "mine" } });
  await g.op("f", "delete", { where: "id = 6" });
  await pickFails(g, "h", `f@${tip(g.storage("f"))}`, "ECANCELED", "conflict");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await pick(g, "h", "f"); // an append needs no row of before
  await checkTip(g, "h", [...changed(without(rows(0, 20), 5, 7), 6, { v: "mine" }), ...rows(100, 3, "f")]);
  await g.op("main", "fork", { name: "i", from: "main" });
  await g.op("f", "delete", { where: "id = 101" });
  await pick(g, "i", "f", ["merged", "empty-merge"]); // it never had that row
  await checkThenUnmount(g, { i: without(rows(0, 20), 5, 7) });
});

// --- stable row ids ---

onEach("stable row ids: a compaction that was left out, deletes and updates behind it, both ways", async (t, engine) => {
  const g = await leftOut(t, engine, STABLE);
  await g.op("f", "delete", { where: "id = 6" });
  await g.op("f", "update", { where: "id = 8", values: { v: "up" } });
  await g.op("main", "delete", { where: "id = 10" });
  let all = changed(without(rows(0, 20), 5, 6, 7, 10), 8, { v: "up" });
  const before = await rowIds(g, "main", without(rows(0, 20), 5, 7, 10));
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  kept(before, await rowIds(g, "main", all), "ids stay, that of the row that f updated too");
  await g.op("f", "delete", { where: "id = 9" });
  await g.op("main", "add", { rows: rows(100, 2, "m") });
  all = [...without(all, 9), ...rows(100, 2, "m")];
  await merge(g, "f", "main");
  await checkTip(g, "f", all);
  kept(before, await rowIds(g, "f", all), "f");
  t.diagnostic(`and back: ${await mergesOrRefuses(g, "main", "f", all)}`);
  await checkThenUnmount(g, { f: all });
});
