// SPDX-License-Identifier: Apache-2.0
// What rows of a table with stable row ids are called.
import assert from "node:assert/strict";
import { stock } from "./stock.mjs";
import { ENGINES } from "./workspace.mjs";

const idsBy = async (e, dir, branch, where) => (await stock[e].op(dir, branch, "rowIds", { where })).value;
// id -> row id of a branch: the same for both engines, from the storage and through the mount, by filter and by scan.
export async function rowIds(g, branch, expected) {
  const first = await idsBy("lance10", g.ds, branch);
  assert.deepEqual(first.map(([id]) => id).sort((a, b) => a - b), expected.map((r) => r.id).sort((a, b) => a - b));
  assert.equal(new Set(first.map(([, rowId]) => rowId)).size, first.length, `no id twice: ${JSON.stringify(first)}`);
  for (const e of ENGINES) {
    for (const [dir, name] of [[g.ds, branch], [g.m.tree(branch), "main"]]) {
      assert.deepEqual(await idsBy(e, dir, name), first, `${e} scans ${dir}`);
      for (const where of ["id < 6", "id >= 6", "v = 'mm'", "id IN (2, 5, 101, 203)"]) {
        const [low, high] = [await idsBy(e, dir, name, where), new Map(first)];
        for (const [id, rowId] of low) assert.equal(rowId, high.get(id), `${e}, ${where}, row ${id} of ${dir}`);
      }
      const halves = [...(await idsBy(e, dir, name, "id < 6")), ...(await idsBy(e, dir, name, "id >= 6"))];
      assert.deepEqual(halves, first, `${e}: two filters make the whole of ${dir}`);
    }
  }
  return new Map(first);
}
// Rows that were there keep their ids.
export function kept(before, after, what) {
  for (const [id, rowId] of before) if (after.has(id)) assert.equal(after.get(id), rowId, `${what}: row ${id}`);
}
