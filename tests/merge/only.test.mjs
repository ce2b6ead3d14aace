// SPDX-License-Identifier: Apache-2.0
// only=: some classes of what the source changed now, the rest with a later merge, which finds nothing twice and no
// conflict in what was taken over before.
import assert from "node:assert/strict";
import { configure } from "../interop/configure.mjs";
import { load, tip } from "../interop/manifest.mjs";
import { changed, plus, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, revert, scratch, undo } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);
const config = (g, branch = "main") => load(g.storage(branch)).config.k;
const metadata = (g, branch = "main") => load(g.storage(branch)).metadata;

// f: 3 appends 100..102, 4 deletes 5, 5 updates 12, 6 sets a config key. main: 3 deletes 1.
async function branch(t, engine) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "update", { where: "id = 12", values: { v: "up" } });
  configure(g.storage("f"), { config: { k: "1" } });
  await g.op("main", "delete", { where: "id = 1" });
  return g;
}
const OWN = without(TWENTY, 1);
const ROWS = [...changed(without(OWN, 5), 12, { v: "up" }), ...rows(100, 3, "f")];

onEach("only=config, then all of it", async (t, engine) => {
  const g = await branch(t, engine);
  await merge(g, "main", "f only=config");
  await checkTip(g, "main", OWN);
  assert.equal(config(g), "1");
  assert.equal(metadata(g)["lancefs.vector"], "main:3", "the tip at that merge; f is not held");
  assert.equal(metadata(g)["lancefs.partial"], undefined);
  assert.equal(load(g.ds).transaction.properties["lancefs.only"], "config");
  await merge(g, "main", "f only=config", "up-to-date");
  await merge(g, "main", "f");
  await checkTip(g, "main", ROWS);
  assert.equal(config(g), "1");
  await merge(g, "main", "f", "up-to-date");
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: ROWS, f: ROWS });
});

onEach("only=config, then both sides change one row: the conflict is still there", async (t, engine) => {
  const g = await branch(t, engine);
  await merge(g, "main", "f only=config");
  await g.op("main", "update", { where: "id = 5", values: { v: "mine" } }); // f deleted it
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: changed(OWN, 5, { v: "mine" }) });
});

onEach("only=rows, then all of it: nothing comes twice, the config comes", async (t, engine) => {
  const g = await branch(t, engine);
  await merge(g, "main", "f only=rows");
  await checkTip(g, "main", ROWS);
  assert.equal(config(g), undefined);
  await merge(g, "main", "f only=rows", "up-to-date");
  await merge(g, "main", "f");
  await checkTip(g, "main", ROWS);
  assert.equal(config(g), "1");
  assert.equal(metadata(g)["lancefs.partial"] ?? "", "", "the vector covers it now");
  await merge(g, "main", "f", "up-to-date");
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: ROWS, f: ROWS });
});

onEach("only=rows, then what came is deleted, updated and compacted: a full merge brings none of it back", async (t, engine) => {
  const g = await branch(t, engine);
  await merge(g, "main", "f only=rows");
  await g.op("main", "delete", { where: "id IN (100, 101, 102)" });
  await g.op("main", "update", { where: "id = 12", values: { v: "mine" } });
  await g.op("f", "add", { rows: rows(110, 1, "f") });
  await merge(g, "main", "f");
  const all = [...changed(without(OWN, 5), 12, { v: "mine" }), ...rows(110, 1, "f")];
  await checkTip(g, "main", all);
  assert.equal(config(g), "1");
  await checkThenUnmount(g, { main: all });
});

onEach("only=rows twice, as the source goes on, and then all", async (t, engine) => {
  const g = await branch(t, engine);
  await merge(g, "main", "f only=rows");
  await g.op("f", "delete", { where: "id IN (6, 101)" });
  await g.op("f", "update", { where: "id = 100", values: { v: "later" } });
  await merge(g, "main", "f only=rows");
  const all = changed(without(ROWS, 6, 101), 100, { v: "later" });
  await checkTip(g, "main", all);
  await merge(g, "main", "f");
  assert.equal(config(g), "1");
  await checkThenUnmount(g, { main: all });
});

onEach("only=rows leaves a new column behind; the full merge brings it, or says why not", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "addColumn", { name: "a", sql: "n + 1" });
  await g.op("main", "delete", { where: "id = 1" });
  await merge(g, "main", "f only=rows");
  await checkTip(g, "main", without(TWENTY, 1, 5));
  await merge(g, "main", "f");
  const all = plus(without(TWENTY, 1, 5), (r) => ({ a: r.n + 1 }));
  await checkTip(g, "main", all);
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("all classes by name are a plain merge", async (t, engine) => {
  const g = await branch(t, engine);
  await merge(g, "main", "f only=indexes,config,schema,columns,rows");
  await merge(g, "main", "f", "up-to-date");
  assert.equal(load(g.ds).transaction.properties["lancefs.only"], undefined);
  await checkThenUnmount(g, { main: ROWS });
});

onEach("only= where a fast-forward would do is a merge of that part", async (t, engine) => {
  const g = await branch(t, engine);
  await g.op("main", "fork", { name: "h", from: "main", version: 2 });
  const a = await merge(g, "h", "f only=config");
  assert.equal(a.result, "merged");
  await checkTip(g, "h", TWENTY);
  await merge(g, "h", "f", ["fast-forward", "merged"]);
  const all = [...changed(without(TWENTY, 5), 12, { v: "up" }), ...rows(100, 3, "f")];
  assert.equal(config(g, "h"), "1");
  await checkThenUnmount(g, { h: all });
});

onEach("only= and undo: the part goes back, and comes again", async (t, engine) => {
  const g = await branch(t, engine);
  await merge(g, "main", "f only=rows");
  await undo(g, "main", "steps=1");
  await checkTip(g, "main", OWN);
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: ROWS });
});

onEach("a part of a commit is picked: the rest of it can still be picked, and merged", async (t, engine) => {
  const g = await branch(t, engine);
  await pick(g, "main", "f@3..6 squash only=rows");
  await checkTip(g, "main", ROWS);
  assert.equal(config(g), undefined);
  await pick(g, "main", "f@3", ["merged", "empty-merge"]); // a part is not the whole: it is not "held already"
  await g.op("main", "delete", { where: "id = 100" });
  await merge(g, "main", "f");
  assert.equal(config(g), "1");
  await checkThenUnmount(g, { main: without(ROWS, 100) });
});

onEach("a part of a commit is taken back", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f");
  await g.op("f", "delete", { where: "id = 5" });
  configure(g.storage("f"), { config: { k: "1" } });
  await merge(g, "main", "f ff=never");
  const version = tip(g.ds);
  await revert(g, "main", `${version} only=config`);
  assert.equal(config(g), undefined);
  await checkTip(g, "main", without(TWENTY, 5));
  await revert(g, "main", `${version} only=rows`);
  await checkThenUnmount(g, { main: TWENTY });
});
