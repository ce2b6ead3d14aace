// SPDX-License-Identifier: Apache-2.0
// A whole data set copied into tree/ is refused, whatever copies it, and leaves nothing behind; what only looks like it
// is not.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { loadEngine } from "../interop/engines.mjs";
import { withTable } from "../interop/reader.mjs";
import { load, tip } from "../interop/manifest.mjs";
import { run, sh } from "../harness/proc.mjs";
import { OVERLAP, rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, mounted, onEach } from "../harness/tip.mjs";
import { difference, generate, needs, snapshot } from "../harness/workspace.mjs";

// "$1" is the data set, "$2" where it is to go: a name in tree/, in a branch, in what leads to branches.
const COPIES = {
  "cp -r": 'cp -r "$1" "$2"',
  "cp -a": 'cp -a "$1" "$2"',
  "rsync -a": 'rsync -a "$1/" "$2/"',
  "rsync -rt --inplace": 'rsync -rt --inplace "$1/" "$2/"',
  "tar x": 'cd "$(dirname "$1")" && tar c --transform "s,^$(basename "$1"),$(basename "$2")," "$(basename "$1")" | tar x -C "$(dirname "$2")"',
  "python's copytree": 'python3 -c "import shutil,sys; shutil.copytree(sys.argv[1], sys.argv[2])" "$1" "$2"',
};

// What a branch keeps of main for its merges stays until .gc, as after rmdir.
const changes = (before, g) => difference(before, snapshot(g.ds)).filter((l) => !/^new: _lancefs(\/lines|$)/.test(l));

for (const [name, script] of Object.entries(COPIES))
  test(`${name} of a data set into tree/ is refused and nothing is left`, async (t) => {
    if (!(await needs(t, script.split(" ")[0] === "cd" ? "tar" : script.split(" ")[0]))) return;
    const g = await mounted(t, "overlap_deletes", "lance12"),
      other = await generate(g.w, "chain", "lance10"),
      before = snapshot(g.ds);
    for (const to of ["imported", "feature/imported"]) {
      const r = await sh(script, [other.ds, g.m.tree(to)]);
      assert.notEqual(r.code, 0, `${name} came through: ${r.stdout}`);
      assert.match(r.stderr, /not permitted/, name);
      assert.equal(fs.existsSync(g.m.tree(to)), false, `${to} is left`);
      assert.deepEqual(changes(before, g), [], `after ${name} to ${to}`);
      assert.match(g.m.log(), /a data set cannot be copied into tree\//);
    }
    await checkThenUnmount(g, { main: OVERLAP.main, feature: OVERLAP.feature });
  });

test("a database with data sets in it, copied into tree/", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    other = await generate(g.w, "chain", "lance12"),
    before = snapshot(g.ds);
  const r = await sh('cp -r "$1" "$2"', [path.dirname(other.ds), g.m.tree("db")]);
  assert.notEqual(r.code, 0);
  assert.deepEqual(changes(before, g), []);
  await g.m.unmount();
});

test("copied over a branch that is there, with the next version's number: it fails, and no version comes of it", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    other = await generate(g.w, "chain", "lance12");
  while (tip(other.ds) < tip(g.storage("feature")) + 1)
    await stock.lance12.op(other.ds, "main", "add", { rows: rows(5000 + tip(other.ds), 1, "x") });
  const newest = load(g.storage("feature")).name;
  for (const script of ['cp -r "$1/." "$2/"', 'rsync -a "$1/" "$2/"', 'tar c -C "$1" . | tar x -C "$2"'])
    for (let twice = 0; twice < 2; twice++) {
      const r = await sh(script, [other.ds, g.m.tree("feature")]);
      assert.notEqual(r.code, 0, script);
      // tar removes what is in its way, and an old version may go; none comes
      assert.equal(load(g.storage("feature")).name, newest, script);
    }
  await checkThenUnmount(g, { main: OVERLAP.main, feature: OVERLAP.feature });
});

onEach("a program that makes a branch and writes to it is no copy", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    more = rows(900, 2, "w");
  fs.mkdirSync(g.m.tree("mine")); // by this process, and the engine writes in it too
  await withTable(loadEngine(engine), g.m.table("mine"), "main", (table) => table.add(more));
  assert.equal(tip(g.storage("mine")), tip(g.ds) + 1);
  const made = await run("mkdir", [g.m.tree("theirs")]); // by one that has ended
  assert.equal(made.code, 0);
  fs.writeFileSync(g.m.tree("theirs", "data", "x.lance"), "x", { flag: "wx" });
  assert.equal(fs.readFileSync(path.join(g.storage("theirs"), "data/x.lance"), "utf8"), "x");
  fs.mkdirSync(g.m.tree("edited")); // by this process; what it starts makes a file beside a control file, as editors do
  assert.notEqual((await sh('> "$1"', [g.m.tree("edited", ".merge.swp")])).code, 0);
  assert.equal(tip(g.storage("edited")), tip(g.ds), "the branch is still there");
  await stock[engine].op(g.m.table("theirs"), "main", "add", { rows: more });
  await checkThenUnmount(g, { mine: [...OVERLAP.main, ...more], theirs: [...OVERLAP.main, ...more], main: OVERLAP.main });
});
