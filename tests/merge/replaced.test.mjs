// SPDX-License-Identifier: Apache-2.0
// A side that replaced the table, by an overwrite or a restore (merge-semantics section 5, s1): taken or left as a whole.
import assert from "node:assert/strict";
import { load, versions } from "../interop/manifest.mjs";
import { changed, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mounted, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, scratch, withOps } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);
const MAIN = [...TWENTY, ...rows(20, 1, "m")];
const OVERWRITTEN = [...rows(700, 4, "o"), ...rows(710, 1, "o")];

// Over all versions of a branch: a fragment id names one set of data files (the first one of it stays), and the highest
// id never decreases. A deletion file is named after its fragment.
function checkHistory(g, branch) {
  const files = new Map();
  let highest = -1;
  for (const v of versions(g.storage(branch))) {
    const m = load(g.storage(branch), v);
    assert.ok(m.maxFragment === undefined || m.maxFragment >= highest, `max_fragment_id of ${branch}@${v}`);
    highest = m.maxFragment ?? highest;
    for (const f of m.fragments) {
      const before = files.get(f.id) ?? f.files[0].path;
      assert.equal(f.files[0].path, before, `fragment ${f.id} of ${branch}@${v}`);
      files.set(f.id, before);
      if (f.deletion) assert.ok(f.deletion.path.startsWith(`${f.id}-`), f.deletion.path);
    }
  }
}

onEach("C52 overwritten, and main changed since: one conflict of the whole table, settled by rows=", async (t, engine) => {
  const g = withOps(await mounted(t, "overwrite_restore", engine));
  await g.op("main", "delete", { where: "id = 3" }); // fragment 0 has a deletion file now
  const { text } = await mergeFails(g, "main", "ow", "ECANCELED", "conflict");
  assert.match(text, /conflicts: 1\n/);
  assert.match(text, /kind: replaced\n\s+unit: table\n\s+base: there\n\s+ours: changed\n\s+theirs: replaced/);
  await mergeFails(g, "main", "ow columns=source-wins", "ECANCELED", "conflict");
  await g.op("main", "fork", { name: "other", from: "main" });
  await merge(g, "main", "ow rows=source-wins");
  assert.equal(load(g.ds).transaction.op, "update", "nothing narrower than an update of every row says it");
  await checkTip(g, "main", OVERWRITTEN);
  checkHistory(g, "main");
  await merge(g, "other", "ow rows=dest-wins", "empty-merge");
  await checkTip(g, "other", without(MAIN, 3));
  await merge(g, "other", "ow", "up-to-date");
  // Life goes on, and later changes of both sides meet as ever.
  await g.op("ow", "add", { rows: rows(720, 2) });
  await g.op("main", "delete", { where: "id = 701" });
  await merge(g, "main", "ow");
  await merge(g, "other", "ow");
  const main = [...without(OVERWRITTEN, 701), ...rows(720, 2)];
  await checkTip(g, "main", main);
  await g.op("main", "optimize");
  for (const b of ["main", "other"]) if (engine === "lance12" || b === "other") checkHistory(g, b);
  await checkThenUnmount(g, { main, other: [...without(MAIN, 3), ...rows(720, 2)] });
});

onEach("C52 the other way: main comes to the branch that was overwritten", async (t, engine) => {
  const g = withOps(await mounted(t, "overwrite_restore", engine));
  await mergeFails(g, "ow", "main", "ECANCELED", "conflict");
  await g.op("ow", "fork", { name: "twin", from: "ow" });
  await merge(g, "ow", "main rows=dest-wins", "empty-merge");
  await checkTip(g, "ow", OVERWRITTEN);
  await merge(g, "twin", "main rows=source-wins");
  await checkTip(g, "twin", MAIN);
  await merge(g, "main", "ow", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: OVERWRITTEN, twin: MAIN });
});

onEach("C52 a pick of the overwrite: a conflict, or by rows=source-wins the replaced table", async (t, engine) => {
  const g = withOps(await mounted(t, "overwrite_restore", engine));
  await pick(g, "main", "ow@3 rows=source-wins");
  await checkTip(g, "main", rows(700, 4, "o"));
  checkHistory(g, "main");
  await pick(g, "main", "ow@4");
  await checkThenUnmount(g, { main: OVERWRITTEN });
});

onEach("overwritten on both sides", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "overwrite", { rows: rows(500, 5, "f") });
  await g.op("main", "overwrite", { rows: rows(600, 6, "m") });
  await g.op("main", "delete", { where: "id = 600" });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await merge(g, "main", "f strategy=source-wins");
  await checkTip(g, "main", rows(500, 5, "f"));
  await merge(g, "f", "main", ["fast-forward", "up-to-date"]);
  await g.op("f", "update", { where: "id = 501", values: { v: "up" } });
  await merge(g, "main", "f", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: changed(rows(500, 5, "f"), 501, { v: "up" }) });
});

onEach("overwritten with other columns, and the other side changed rows", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  const others = Array.from({ length: 5 }, (_, i) => ({ id: i, n: `text ${i}`, more: i / 2 }));
  await g.op("main", "index", { column: "n" });
  await g.fork("f", "h", "twin");
  await g.op("main", "recreate", { rows: others });
  assert.equal(load(g.ds).transaction.op, "overwrite");
  for (const b of ["f", "twin"]) await g.op(b, "add", { rows: rows(20, 2) });
  await mergeFails(g, "f", "main", "ECANCELED", "conflict");
  await merge(g, "f", "main rows=source-wins");
  assert.deepEqual(load(g.storage("f")).indices, []);
  await checkTip(g, "f", others);
  await g.op("f", "add", { rows: [{ id: 9, n: "nine", more: 9 }] });
  await merge(g, "h", "main", "fast-forward");
  await merge(g, "h", "f", ["fast-forward", "merged"]);
  await merge(g, "twin", "main rows=dest-wins", "empty-merge");
  const grown = [...others, { id: 9, n: "nine", more: 9 }];
  await checkThenUnmount(g, { main: others, f: grown, h: grown, twin: [...TWENTY, ...rows(20, 2)] });
});

onEach("overwritten, and the other side only compacted, indexed and configured: the replaced state", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "h", "k");
  await g.op("f", "overwrite", { rows: rows(500, 5, "f") });
  await g.op("h", "optimize");
  await g.op("k", "index", { column: "id" });
  await g.op("main", "index", { column: "id" });
  await g.op("main", "optimize");
  await merge(g, "main", "f");
  assert.deepEqual(load(g.ds).indices, []);
  await merge(g, "f", "h", "empty-merge");
  await merge(g, "k", "f");
  assert.deepEqual(load(g.storage("k")).indices, []);
  checkHistory(g, "k");
  const all = rows(500, 5, "f");
  await checkThenUnmount(g, { main: all, f: all, k: all });
});

onEach("C52 restored to before an append, and the other changed rows: a conflict as a whole", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("main", "restore", { version: 1 });
  await g.op("f", "delete", { where: "id = 2" });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await g.op("main", "fork", { name: "twin", from: "main" });
  await merge(g, "main", "f rows=source-wins");
  await checkTip(g, "main", without(TWENTY, 2));
  checkHistory(g, "main");
  await merge(g, "twin", "f rows=dest-wins", "empty-merge");
  await checkThenUnmount(g, { main: without(TWENTY, 2), twin: rows(0, 10) });
});

onEach("a restore that comes back to the base is no change", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  const [at] = versions(g.storage("f")).slice(-1);
  await g.op("f", "add", { rows: rows(90, 3) });
  await g.op("f", "restore", { version: at });
  await g.op("main", "delete", { where: "id = 2" });
  await merge(g, "main", "f", "empty-merge");
  await checkThenUnmount(g, { main: without(TWENTY, 2) });
});

onEach("stable row ids: replaced as a whole, ids stay unique, stock goes on", async (t, engine) => {
  const g = withOps(await mounted(t, "stable_row_ids", engine));
  await g.op("feature", "overwrite", { rows: rows(500, 5, "f") });
  await mergeFails(g, "main", "feature", "ECANCELED", "conflict");
  await merge(g, "main", "feature rows=source-wins");
  const all = changed(rows(500, 5, "f"), 501, { v: "up" });
  await checkTip(g, "main", rows(500, 5, "f"));
  await g.op("main", "update", { where: "id = 501", values: { v: "up" } });
  await g.op("main", "index", { column: "id" });
  await g.op("main", "add", { rows: rows(600, 2) });
  await g.op("main", "optimize");
  await checkThenUnmount(g, { main: [...all, ...rows(600, 2)] });
});
