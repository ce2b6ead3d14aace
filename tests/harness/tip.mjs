// SPDX-License-Identifier: Apache-2.0
// The checks that nearly every test makes: is a branch exactly these rows for both engines, from the storage and through
// the mount; did a merge do what it says; did a merge that stopped leave everything as it was.
import assert from "node:assert/strict";
import { test } from "node:test";
import path from "node:path";
import { tip } from "../interop/manifest.mjs";
import { ctl } from "./control.mjs";
import { checkManifest } from "./invariants.mjs";
import { mount } from "./mount.mjs";
import { expectRows } from "./rows.mjs";
import { stock } from "./stock.mjs";
import { difference, ENGINES, generate, snapshot, workspace } from "./workspace.mjs";

// One test for each engine that writes the data set; both engines read it in either.
export function onEach(name, fn, options = {}) {
  for (const engine of ENGINES) test(`${name} [written by ${engine}]`, options, (t) => fn(t, engine));
}

// A generated data set, mounted: { w, ds, root, storage(branch), m }.
export async function mounted(t, generator, engine, { generated, ...options } = {}) {
  const w = workspace(t),
    g = await generate(w, generator, engine, generated);
  return { w, engine, ...g, m: await mount(w, g.ds, options) };
}

// The branch as each engine reads it from the storage.
export async function checkStorage(g, branch, expected) {
  for (const e of ENGINES)
    expectRows(await stock[e].read(g.ds, branch), expected, `${branch} in the storage, read by ${e}`);
}
// The branch as each engine reads it below the mount, by both of its names.
export async function checkView(g, branch, expected, shown = branch) {
  for (const e of ENGINES)
    for (const dir of [g.m.tree(shown), g.m.table(branch)])
      expectRows(await stock[e].read(dir), expected, `${path.relative(g.m.mnt, dir)} through the mount, read by ${e}`);
}
// Both. `g` needs ds, and m when it is mounted.
export async function checkTip(g, branch, expected, { storage = true, view = true, shown } = {}) {
  if (storage) await checkStorage(g, branch, expected);
  if (view && g.m?.isMounted()) await checkView(g, branch, expected, shown);
}
// { branch: rows }: through the mount now, and from the storage when nobody holds it any more.
export async function checkThenUnmount(g, branches, options) {
  for (const [branch, expected] of Object.entries(branches))
    await checkTip(g, branch, expected, { ...options, storage: false });
  await g.m.unmount();
  if (options?.storage === false) return;
  for (const [branch, expected] of Object.entries(branches)) await checkStorage(g, branch, expected);
}

export const control = (g, branch, name = ".merge") => path.join(g.m.mnt, "tree", branch, name);
// What a merge may be called when the target already holds every row: the lineage may still be worth a version.
export const NOTHING_NEW = ["up-to-date", "fast-forward", "empty-merge"];

const said = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text}`;

// `echo line > tree/target/.merge` must succeed with this result (or one of these); the version it wrote is checked.
// Returns the answer.
export async function merges(g, target, line, result = "merged", options) {
  const before = tip(g.storage(target)),
    r = await ctl(control(g, target), line);
  assert.equal(r.code, 0, `echo '${line}' > tree/${target}/.merge: ${said(r)}`);
  assert.ok([result].flat().includes(r.answer.result), `result ${result} was expected: ${said(r)}`);
  checkCommitted(g, target, before, r, options);
  return r.answer;
}
// A result that wrote a version wrote exactly the next one; any other wrote none.
export function checkCommitted(g, target, before, r, options) {
  const wrote = ["merged", "fast-forward", "empty-merge"].includes(r.answer.result),
    after = tip(g.storage(target));
  assert.equal(after, wrote ? before + 1 : before, `versions of ${target}: ${said(r)}`);
  if (!wrote) return;
  assert.equal(Number(r.answer.version), after, "the answer's version");
  const m = checkManifest(g.storage(target), target, options);
  assert.equal(r.answer.transaction, m.transaction.uuid, "the answer's transaction");
}

// Files of the merge that nothing names yet, as a stop in the middle may leave them for .gc.
const isLeftover = (line) => line.startsWith("new: ") && !line.includes("_versions/") && !line.includes("_refs/");

// The command must fail with this errno (or one of these) and result, and nothing may change in the storage; with
// `leftovers`, files that no version names may stay. Returns the answer.
export async function stops(g, target, line, errno, result, { leftovers = false } = {}) {
  const before = snapshot(g.root),
    r = await ctl(control(g, target), line);
  assert.notEqual(r.code, 0, `echo '${line}' > tree/${target}/.merge came through: ${r.answer.text}`);
  if (errno) assert.ok([errno].flat().includes(r.errno), `${errno} was expected: ${said(r)}`);
  if (result) assert.equal(r.answer.result, result, said(r));
  const changes = difference(before, snapshot(g.root)).filter((l) => !leftovers || !isLeftover(l));
  assert.deepEqual(changes, [], "a command that stopped changed the storage");
  return r.answer;
}

const REFUSALS = ["EOPNOTSUPP", "ECANCELED", "ENODATA"];
// What is not due everywhere: a merge with exactly these rows, or a refusal that says why, changes no version and loses
// no file. Wrong rows never. Returns "merged" or "refused".
export async function mergesOrRefuses(g, target, line, expected) {
  const dir = g.storage(target),
    before = tip(dir),
    files = snapshot(g.root),
    r = await ctl(control(g, target), line);
  if (r.code === 0) {
    checkCommitted(g, target, before, r);
    await checkTip(g, target, expected);
    return "merged";
  }
  assert.ok(REFUSALS.includes(r.errno), `errno of a refusal: ${said(r)}`);
  assert.match(r.answer.result ?? "", /^(refused|conflict|error)$/, said(r));
  assert.equal(tip(dir), before, "a refusal writes no version");
  assert.deepEqual(
    difference(files, snapshot(g.root)).filter((l) => !isLeftover(l)),
    [],
    "a refusal changes nothing",
  );
  return "refused";
}
