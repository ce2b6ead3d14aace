// SPDX-License-Identifier: Apache-2.0
// base=REF and fieldids=: a merge base that is named, and field ids that both sides gave out.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load, manifests, tip } from "../interop/manifest.mjs";
import { changed, plus, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mounted, onEach } from "../harness/tip.mjs";
import { checkColumns, fieldsOf, merge, mergeFails, pick, pickFails, scratch, withOps } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);

// --- base=

// main: 2 begins f; 3 deletes 1. f: 3 appends 100, 4 deletes 5.
async function forked(t, engine) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 1, "f") });
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("main", "delete", { where: "id = 1" });
  return g;
}
const BOTH = [...without(TWENTY, 1, 5), ...rows(100, 1, "f")];
const remove = (dir, version) => fs.rmSync(path.join(dir, "_versions", manifests(dir).find((m) => m.version === version).name));

onEach("base=: the one that would be found, an older one, and the branch's own first version give the same rows", async (t, engine) => {
  const g = await forked(t, engine);
  const lines = ["base=main@2", "base=main@1", "base=f@2", "base=tree/f@2"];
  await g.fork("b0", "b1", "b2", "b3");
  for (const [i, line] of lines.entries()) {
    const a = await merge(g, `b${i}`, `f ${line}`);
    assert.equal(a.base, line === "base=main@1" ? "main@1" : "main@2");
    await checkTip(g, `b${i}`, BOTH, { view: false });
    await merge(g, `b${i}`, "f", "up-to-date");
    await merge(g, `b${i}`, "f base=main@1", "up-to-date");
  }
  await merge(g, "main", "b0 base=main@2", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { main: BOTH });
});

onEach("base=: merged before, then an older base: what came then is there once", async (t, engine) => {
  const g = await forked(t, engine);
  await merge(g, "main", "f");
  await g.op("main", "update", { where: "id = 100", values: { v: "mine" } });
  await g.op("f", "add", { rows: rows(101, 1, "f") });
  await g.op("f", "delete", { where: "id = 6" });
  await merge(g, "main", "f base=main@2");
  await checkThenUnmount(g, { main: [...changed(without(BOTH, 6), 100, { v: "mine" }), ...rows(101, 1, "f")] });
});

onEach("base= of which a side never held anything is refused: its rows would count as deleted", async (t, engine) => {
  const g = await forked(t, engine);
  for (const [ref, who] of [
    ["main@3", "f"], // the target's tip: all that f lacks would go
    ["main", "f"],
    ["f@4", "main"], // the source's tip: nothing would come
    ["f", "main"],
    ["f@3", "main"],
  ]) {
    const a = await mergeFails(g, "main", `f base=${ref}`, "EINVAL", "error");
    assert.ok(a.error.includes(`${who} does not hold`), a.error);
  }
  await g.fork("other");
  await g.op("other", "add", { rows: rows(300, 1) });
  await mergeFails(g, "main", "f base=other", "EINVAL", "error");
  await mergeFails(g, "main", "f base=nosuch", "ENOENT", "error");
  await mergeFails(g, "main", "f base=main@99", "ENOENT", "error");
  await pickFails(g, "main", "f@4 base=main@2", "EINVAL", "error");
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: BOTH });
});

onEach("base= is the cure when the base was cleaned away: the branch's first version is the same state", async (t, engine) => {
  const g = await forked(t, engine);
  remove(g.ds, 2);
  remove(g.ds, 1);
  const a = await mergeFails(g, "main", "f", "ENODATA", "error");
  assert.match(a.error, /base=/);
  await mergeFails(g, "main", "f base=main@3", "EINVAL", "error");
  await merge(g, "main", "f base=f@2");
  await checkTip(g, "main", BOTH);
  await merge(g, "main", "f", "up-to-date");
  await g.op("f", "delete", { where: "id = 7" });
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: without(BOTH, 7) });
});

// --- fieldids=

onEach("fieldids=strict: new columns of both sides under one id are a conflict that names both; renumber merges them", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f", "h");
  await g.op("main", "addColumn", { name: "mine", sql: "n + 1" });
  await g.op("f", "addColumn", { name: "theirs", sql: "n * 2" });
  const id = load(g.ds).tree.fields.map((f) => Number(f.id?.[0] ?? 0)).at(-1);
  for (const line of ["f fieldids=strict", "f fieldids=strict strategy=source-wins", "fieldids=strict f schema=dest-wins"]) {
    const a = await mergeFails(g, "main", line, "ECANCELED", "conflict");
    assert.match(a.text, /- kind: field-id\n\s+unit: column theirs\n/);
    assert.ok(a.text.includes(`ours: mine has id ${id}`), a.text);
    assert.ok(a.text.includes(`theirs: id ${id}`), a.text);
  }
  await merge(g, "h", "f fieldids=strict", "fast-forward");
  await merge(g, "main", "f fieldids=renumber");
  const all = plus(TWENTY, (r) => ({ mine: r.n + 1, theirs: r.n * 2 }));
  await checkTip(g, "main", all);
  await merge(g, "f", "main fieldids=strict", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("fieldids=strict lets columns through that share no id, and one column that both took from one place", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f", "h");
  await g.op("f", "addColumn", { name: "a", sql: "n + 1" });
  await merge(g, "h", "f", "fast-forward");
  await merge(g, "main", "f", "fast-forward");
  await g.op("h", "addColumn", { name: "b", sql: "n * 2" });
  await g.op("main", "delete", { where: "id = 3" });
  await merge(g, "main", "h fieldids=strict");
  const all = plus(without(TWENTY, 3), (r) => ({ a: r.n + 1, b: r.n * 2 }));
  await checkThenUnmount(g, { main: all });
});

onEach("C49 add_columns: one name on both sides is one conflict, whatever fieldids= says", async (t, engine) => {
  const g = withOps(await mounted(t, "add_columns", engine));
  for (const line of ["clash", "clash fieldids=strict", "same", "same fieldids=strict"])
    await mergeFails(g, "main", line, "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: plus(without(rows(0, 100), 60), (r) => ({ label: `L${r.v}` })) });
});

onEach("C71 nested_types: strict ids with structs and lists: merged as without, or a conflict by its name", async (t, engine) => {
  const g = withOps(await mounted(t, "nested_types", engine));
  const before = tip(g.ds);
  const mine = load(g.ds).tree.fields.length;
  await merge(g, "main", "feature fieldids=strict");
  assert.equal(tip(g.ds), before + 1);
  checkColumns(g, "main");
  assert.equal(fieldsOf(g).length, mine + 1, "the column that the branch added, and every one of main");
  await g.m.unmount();
});
