// SPDX-License-Identifier: Apache-2.0
// What tests of columns, compaction and the verbs beside merge share: data sets made in the test, every verb, checks on
// the schema of what was written.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load, tip } from "../interop/manifest.mjs";
import { ctl } from "./control.mjs";
import { mount } from "./mount.mjs";
import { rows } from "./rows.mjs";
import { stock } from "./stock.mjs";
import { checkCommitted, control } from "./tip.mjs";
import { difference, place, snapshot, workspace } from "./workspace.mjs";

// A data set with these rows, mounted; op(branch, operation, arguments) is one stock commit. Several lots of rows are
// several fragments.
export const scratch = (t, engine, ...lots) => scratchWith({}, t, engine, ...lots);
// The same with options of the table's creation.
export async function scratchWith(options, t, engine, ...lots) {
  const w = workspace(t),
    root = path.join(w.dir, "data"),
    g = { w, engine, ...place(path.join(root, "t.lance"), root) };
  fs.mkdirSync(root);
  await stock[engine].create(g.ds, lots[0], options);
  for (const more of lots.slice(1)) await stock[engine].op(g.ds, "main", "add", { rows: more });
  return withOps({ ...g, m: await mount(w, g.ds) });
}
// The short form of a stock commit, for a generated data set too.
export function withOps(g) {
  g.op = (branch, operation, args, by = g.engine) => stock[by].op(g.ds, branch, operation, args);
  g.fork = (...names) =>
    names.reduce((before, name) => before.then(() => g.op("main", "fork", { name, from: "main" })), Promise.resolve());
  return g;
}

// A branch whose commits are of five kinds. main: two fragments of twenty rows, version 2. f: 3 appends 100..102, 4 deletes 5,
// 5 updates 12, 6 appends 110, 7 adds column a.
export async function branchOfFive(t, engine) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "update", { where: "id = 12", values: { v: "up" } });
  await g.op("f", "add", { rows: rows(110, 1, "f") });
  await g.op("f", "addColumn", { name: "a", sql: "n + 1" });
  assert.equal(tip(g.storage("f")), 7);
  return g;
}

// [name, type, nullable, { metadata }] of each field of the newest version.
export const fieldsOf = (g, branch = "main") =>
  load(g.storage(branch)).tree.fields.map((f) => [
    f.name[0],
    f.logical_type[0],
    f.nullable?.[0] === "true",
    Object.fromEntries((f.metadata ?? []).map((e) => [e.key[0], e.value?.[0] ?? ""])),
  ]);

// Field ids name one column each: in the schema, and in the files of a fragment.
export function checkColumns(g, branch) {
  const m = load(g.storage(branch)),
    fields = m.tree.fields.map((f) => ({ id: Number(f.id?.[0] ?? 0), parent: Number(f.parent_id?.[0] ?? 0), name: f.name[0] })),
    ids = fields.map((f) => f.id);
  assert.equal(new Set(ids).size, ids.length, `field ids are unique: ${ids}`);
  for (const f of fields) {
    assert.ok(f.parent === -1 || ids.slice(0, ids.indexOf(f.id)).includes(f.parent), `${f.name} stands behind its parent`);
    const twins = fields.filter((x) => x.parent === f.parent && x.name === f.name);
    assert.equal(twins.length, 1, `one column ${f.name}`);
  }
  for (const f of m.tree.fragments ?? []) {
    const held = (f.files ?? []).flatMap((x) => (x.fields ?? []).map(Number)).filter((id) => id !== -2);
    assert.equal(new Set(held).size, held.length, `fragment ${f.id?.[0] ?? 0} reads each column from one file: ${held}`);
    for (const x of f.files ?? []) {
      assert.equal((x.column_indices ?? []).length, (x.fields ?? []).length, "a column index for each field of a file");
      assert.ok((x.fields ?? []).some((id) => ids.includes(Number(id))), `${x.path} holds a column of the schema`);
    }
  }
  return m;
}

const said = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text}`;

// `echo line > tree/target/.FILE` must come through with this result (or one of these). Returns the answer.
export async function does(g, file, target, line, result = "merged") {
  const before = tip(g.storage(target)),
    r = await ctl(control(g, target, file), line);
  assert.equal(r.code, 0, `echo '${line}' > tree/${target}/${file}: ${said(r)}`);
  assert.ok([result].flat().includes(r.answer.result), `result ${result} was expected: ${said(r)}`);
  checkCommitted(g, target, before, r);
  checkColumns(g, target);
  return r.answer;
}
// The command must fail with this errno and result (or one of these), and nothing may change in the storage.
export async function fails(g, file, target, line, errno, result) {
  const before = snapshot(g.root),
    r = await ctl(control(g, target, file), line);
  assert.ok([errno].flat().includes(r.errno), `${errno} was expected of ${line}: ${said(r)}`);
  if (result) assert.ok([result].flat().includes(r.answer.result), `result ${result} was expected: ${said(r)}`);
  assert.deepEqual(difference(before, snapshot(g.root)), [], "a command that failed changed the storage");
  if (r.answer.result === "conflict" && r.answer.conflicts !== undefined)
    assert.ok(Number(r.answer.conflicts) > 0 && /- kind: \S/.test(r.answer.text), `the conflicts are listed: ${said(r)}`);
  return r.answer;
}

export const merge = (g, target, line, result) => does(g, ".merge", target, line, result);
export const pick = (g, target, line, result) => does(g, ".cherry-pick", target, line, result);
export const revert = (g, target, line, result) => does(g, ".revert", target, line, result);
export const undo = (g, target, line, result) => does(g, ".undo", target, line, result);
export const mergeFails = (g, target, line, errno, result) => fails(g, ".merge", target, line, errno, result);
export const pickFails = (g, target, line, errno, result) => fails(g, ".cherry-pick", target, line, errno, result);
export const revertFails = (g, target, line, errno, result) => fails(g, ".revert", target, line, errno, result);
export const undoFails = (g, target, line, errno, result) => fails(g, ".undo", target, line, errno, result);
