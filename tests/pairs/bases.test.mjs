// SPDX-License-Identifier: Apache-2.0
// Base paths as units of the three-way table: known by their text, never in conflict, united, and none of the target's is
// dropped or given another id; their ids in files follow. A path has no other value, and neither stock Lance nor lancefs ever
// takes one away, so only the rows with A and X or with B alone can be.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../interop/manifest.mjs";
import { rows } from "../harness/rows.mjs";
import { checkThenUnmount } from "../harness/tip.mjs";
import { merge, scratch } from "../harness/verbs.mjs";
import { ENGINES } from "../harness/workspace.mjs";

const TEN = rows(0, 10);
const pathsOf = (g, branch) => load(g.storage(branch)).bases.map((b) => b.path);
const byId = (g, branch) => Object.fromEntries(load(g.storage(branch)).bases.map((b) => [b.id, b.path]));

// main <- f <- deep: a branch reaches its parent by a base path, deep has those of main and of f.
async function family(t, engine) {
  const g = await scratch(t, engine, TEN);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("main", "fork", { name: "deep", from: "f" });
  await g.op("deep", "add", { rows: rows(200, 1, "d") });
  return g;
}
const MORE = [...rows(100, 2, "f"), ...rows(200, 1, "d")];
// fork: the target, made anew from another branch.
const CASES = {
  "A A A": { source: "f", fork: ["h", "main"], target: "h", comes: rows(100, 2, "f") },
  "X B X": { source: "deep", target: "main", comes: MORE },
  "X X B": { source: "main", target: "deep", comes: [...MORE, ...rows(80, 1, "main")], sourceRows: 80 },
  "X B B": { source: "deep", fork: ["k", "f"], target: "k", comes: MORE },
};
let turn = 0;
for (const [row, c] of Object.entries(CASES))
  for (const strategy of ["fail", "source-wins", "dest-wins"]) {
    const engine = ENGINES[turn++ % ENGINES.length];
    test(`base path: ${row}, ${strategy} [written by ${engine}]`, async (t) => {
      const g = await family(t, engine),
        { source } = c;
      if (c.fork) await g.op("main", "fork", { name: c.fork[0], from: c.fork[1] });
      await g.op(c.target, "add", { rows: rows(70, 1, c.target) });
      if (c.sourceRows) await g.op(source, "add", { rows: rows(c.sourceRows, 1, source) });
      const before = byId(g, c.target),
        theirs = pathsOf(g, source);
      await merge(g, c.target, `${source} strategy=${strategy}`);
      const after = byId(g, c.target);
      for (const [id, path] of Object.entries(before)) assert.equal(after[id], path, `base ${id} of the target stays`);
      const used = load(g.storage(c.target)).fragments.flatMap((f) => f.files.map((x) => x.base)).filter((x) => x !== undefined);
      for (const id of used) assert.ok(after[id], `base ${id} is named`);
      const own = g.storage(c.target),
        added = Object.values(after).filter((p) => !Object.values(before).includes(p));
      for (const p of added) assert.ok(theirs.includes(p) || p.includes("/_lancefs/lines/"), `${p}: theirs, or the line's storage`);
      assert.equal(Object.values(after).filter((p) => p === own).length, 0, "no base names the target itself");
      await checkThenUnmount(g, { [c.target]: [...TEN, ...c.comes, ...rows(70, 1, c.target)] });
    });
  }
