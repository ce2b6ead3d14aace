// SPDX-License-Identifier: Apache-2.0
// C41: file systems without hard links, or without the renames that replace nothing or exchange two names. Merges and changes
// of names find another exclusive way, or are refused with the name of what is lacking; wrong or half-made states never.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { ctl, ctlThrough } from "../harness/control.mjs";
import { faultyMount } from "../harness/faults.mjs";
import { settled } from "../harness/names.mjs";
import { run, sh } from "../harness/proc.mjs";
import { expectRows, OVERLAP, rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, control } from "../harness/tip.mjs";
import { difference, ENGINES, generate, LANCEFS, snapshot, workspace } from "../harness/workspace.mjs";

const { main: MAIN, feature: FEATURE, union: UNION } = OVERLAP;
const failing = (calls, errno) => calls.map((c) => `${c} ${errno} -`);

// What is lacking; does everything come through all the same?
const LINKS = ["link", "linkat"],
  LACKING = {
    "no hard links, EPERM": [failing(LINKS, "EPERM"), true],
    "no hard links, EOPNOTSUPP": [failing(LINKS, "EOPNOTSUPP"), true],
    "no hard links, ENOSYS": [failing(LINKS, "ENOSYS"), true],
    "hard links are forbidden, EACCES": [failing(LINKS, "EACCES"), true],
    "hard links fail, EXDEV": [failing(LINKS, "EXDEV"), true],
    "renameat2 knows no flags, EINVAL": [failing(["renameat2"], "EINVAL"), true],
    "no renameat2, ENOSYS": [failing(["renameat2"], "ENOSYS"), true],
    "neither links nor renameat2": [[...failing(LINKS, "EPERM"), ...failing(["renameat2"], "EINVAL")], false],
  };

// Each verb, what the branches then hold.
const STATE = { main: MAIN, feature: FEATURE };
const VERBS = {
  merge: [(m) => ctl(path.join(m.mnt, "tree/main/.merge"), "feature"), { ...STATE, main: UNION }],
  rebase: [(m) => ctl(path.join(m.mnt, "tree/feature/.rebase"), "main"), { ...STATE, feature: UNION }],
  mkdir: [(m) => sh('mkdir "$1/tree/new"', [m.mnt]), { ...STATE, new: MAIN }],
  mv: [(m) => sh('mv "$1/tree/feature" "$1/tree/other"', [m.mnt]), { main: MAIN, other: FEATURE }],
  rmdir: [(m) => sh('rmdir "$1/tree/feature"', [m.mnt]), { main: MAIN }],
  tag: [(m) => ctl(path.join(m.mnt, "tree/feature/.tag"), "t"), STATE],
};

// Files that no version names, and an empty directory, may stay for .gc.
const isLeftover = (line) => line.startsWith("new: ") && !line.includes("_versions/") && !line.includes("_refs/tags/") && !line.includes("_refs/branches/");

for (const [name, [lacks, comes]] of Object.entries(LACKING))
  test(`C41 ${name}`, { timeout: 600_000 }, async (t) => {
    const w = workspace(t),
      g = await generate(w, "overlap_deletes", "lance12"),
      said = [];
    for (const [i, [verb, [does, after]]] of Object.entries(VERBS).entries()) {
      await g.reset();
      const before = snapshot(g.root),
        m = await faultyMount(w, g.ds, ...lacks),
        r = await does(m),
        log = m.log();
      await m.unmount();
      const state = r.code === 0 ? after : STATE;
      if (comes) assert.equal(r.code, 0, `${verb}: ${r.stderr}${r.answer?.text ?? ""}\n${log}`);
      if (r.code !== 0) {
        assert.match(`${r.answer?.text ?? ""}${log}`, /neither hard links nor renames that replace nothing/, `${verb} says why`);
        assert.deepEqual(difference(before, snapshot(g.root)).filter((l) => !isLeftover(l)), [], `${verb} changed nothing`);
      }
      said.push(`${verb} ${r.code === 0 ? "comes through" : "is refused"}`);
      for (const [branch, expected] of Object.entries(state))
        expectRows(await stock[ENGINES[i % 2]].read(g.ds, branch), expected, `${branch} after ${verb}`);
      assert.deepEqual((await stock[ENGINES[i % 2]].op(g.ds, "main", "branches")).value, Object.keys(state).filter((x) => x !== "main").sort());
      settled(g);
      const check = await run(path.join(path.dirname(LANCEFS), "fsck.lancefs"), [g.ds]);
      assert.equal(check.code, 0, `${verb}: ${check.stdout}`);
    }
    t.diagnostic(said.join(", "));
  });

test("C41 no hard links: two merges that race, and a stock writer; each row once", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    m = await faultyMount(w, g.ds, ...failing(LINKS, "EPERM"));
  const all = await Promise.all([
    ctlThrough(control({ ...g, m }, "main"), "feature\n"), // who reads through another descriptor gets the last answer
    ctlThrough(path.join(m.mnt, ".merge"), "feature main\n"),
    stock.lance10.op(g.ds, "main", "add", { rows: rows(9000, 1) }),
  ]);
  for (const r of all.slice(0, 2)) assert.equal(r.code, 0, r.answer.text);
  assert.deepEqual(all.slice(0, 2).map((r) => r.answer.result).sort(), ["merged", "up-to-date"]);
  await m.unmount();
  await checkStorage(g, "main", [...UNION, ...rows(9000, 1)]);
  assert.equal(fs.readdirSync(path.join(g.ds, "_versions")).filter((n) => n.startsWith(".tmp")).length, 0);
});
