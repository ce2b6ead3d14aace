// SPDX-License-Identifier: Apache-2.0
// Tables that declare a primary key (merge-semantics section 3): rows that both sides inserted could share a key, which
// only the data tells. Such merges are refused; everything else merges.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { changed, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, onEach } from "../harness/tip.mjs";
import { mount } from "../harness/mount.mjs";
import { stock } from "../harness/stock.mjs";
import { merge, mergeFails, pick, withOps } from "../harness/verbs.mjs";
import { place, workspace } from "../harness/workspace.mjs";

const TWENTY = rows(0, 20);
async function keyed(t, engine) {
  const w = workspace(t),
    root = path.join(w.dir, "data"),
    g = withOps({ w, engine, ...place(path.join(root, "t.lance"), root) });
  fs.mkdirSync(root);
  await stock[engine].create(g.ds, rows(0, 10), { required: ["v"] });
  await g.op("main", "add", { rows: rows(10, 10) });
  g.m = await mount(w, g.ds);
  await g.op("main", "primaryKey", { columns: ["v"] });
  assert.equal(load(g.ds).tree.fields[1].unenforced_primary_key?.[0], "true", "stock Lance declared the key");
  return g;
}
const refused = async (g, target, source) => {
  const { text } = await mergeFails(g, target, source, "EOPNOTSUPP", "refused");
  assert.match(text, /both .* inserted rows, and the table declares a primary key \(v\).*merge_insert/);
};

onEach("rows appended on both sides under a primary key: refused, and merge_insert is the way", async (t, engine) => {
  const g = await keyed(t, engine);
  await g.fork("f", "h");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await g.op("main", "add", { rows: rows(102, 3, "m") });
  for (const line of ["f", "f rows=source-wins", "f strategy=dest-wins"]) await refused(g, "main", line);
  await refused(g, "f", "main");
  await merge(g, "h", "f", "fast-forward");
  await g.op("main", "mergeInsert", { on: "v", rows: [...rows(100, 3, "f"), { id: 0, v: "m102", n: 7 }] });
  const all = [...TWENTY, ...rows(102, 3, "m").slice(1), ...rows(100, 3, "f"), { id: 0, v: "m102", n: 7 }];
  await checkThenUnmount(g, { main: all, h: [...TWENTY, ...rows(100, 3, "f")] });
});

onEach("one side inserted under a primary key, the other updated, deleted, compacted and indexed", async (t, engine) => {
  const g = await keyed(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await g.op("main", "update", { where: "id IN (2, 12)", values: { n: 7 } });
  await g.op("main", "delete", { where: "id = 3" });
  await g.op("main", "index", { column: "id" });
  const here = changed(without(TWENTY, 3), [2, 12], { n: 7 });
  await merge(g, "main", "f");
  await checkTip(g, "main", [...here, ...rows(100, 3, "f")]);
  await merge(g, "f", "main", "fast-forward");
  // Both hold the inserted rows now: new ones on one side alone go on.
  await g.op("f", "update", { where: "id = 100", values: { n: 8 } });
  await g.op("main", "mergeInsert", { on: "v", rows: [{ id: 4, v: "r4", n: 9 }] });
  await merge(g, "main", "f");
  const all = changed(changed([...here, ...rows(100, 3, "f")], 100, { n: 8 }), 4, { n: 9 });
  await checkThenUnmount(g, { main: all });
});

onEach("a key that was updated, or came by merge_insert, counts as inserted", async (t, engine) => {
  const g = await keyed(t, engine);
  await g.fork("f", "h");
  await g.op("main", "add", { rows: rows(100, 1) });
  await g.op("f", "update", { where: "id = 5", values: { v: "r100" } });
  await g.op("h", "mergeInsert", { on: "v", rows: [{ id: 1, v: "r100", n: 1 }] });
  await refused(g, "main", "f");
  await refused(g, "main", "h");
  await refused(g, "h", "f");
  await checkThenUnmount(g, { main: [...TWENTY, ...rows(100, 1)] });
});

onEach("one insert picked into two branches is one row under its key", async (t, engine) => {
  const g = await keyed(t, engine);
  await g.fork("f", "h");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  const { version } = load(g.storage("f"));
  await pick(g, "main", `f@${version}`);
  await pick(g, "h", `f@${version}`);
  await g.op("h", "delete", { where: "id = 101" });
  await merge(g, "main", "h");
  await checkThenUnmount(g, { main: [...TWENTY, ...without(rows(100, 3, "f"), 101)] });
});
