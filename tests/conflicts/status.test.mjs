// SPDX-License-Identifier: Apache-2.0
// .status tells of a command that waits for choices: which, how many conflicts, how many chosen, and what to type next. What it
// says to type works when it is typed.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { configure } from "../interop/configure.mjs";
import { must, sh } from "../harness/proc.mjs";
import { read, status } from "../harness/reports.mjs";
import { rows } from "../harness/rows.mjs";
import { scratch } from "../harness/verbs.mjs";
import { chooses, continues, stopsOn } from "../harness/conflicts.mjs";
import { ctl } from "../harness/control.mjs";

const waiting = async (g, branch = "main") => {
  const { rows: lines } = await read(g, branch, ".status"),
    of = (key) => lines.find((r) => r.key === key)?.fields.slice(1);
  return { waiting: of("waiting"), conflicts: of("conflicts")?.[0], chosen: of("chosen")?.[0], next: of("next") };
};
const type = (g, branch, line) => must(sh(`cd "$1" && ${line}`, [g.m.tree(branch)]));

// Two keys that both sides changed.
async function clash(t) {
  const g = await scratch(t, "lance12", rows(0, 20));
  configure(g.ds, { config: { k: "0", l: "0" } });
  await g.fork("f");
  configure(g.ds, { config: { k: "m", l: "m" } });
  configure(g.storage("f"), { config: { k: "f", l: "f" } });
  return g;
}

test("nothing waits, a command waits, one choice, both, and it is over", async (t) => {
  const g = await clash(t);
  assert.deepEqual(await waiting(g), { waiting: ["-"], conflicts: undefined, chosen: undefined, next: undefined });
  await stopsOn(g, "main", "f message=both", 2);
  const choose = (k) => ["ours", "theirs"].map((side) => `echo ${side} > .conflicts/${k}/choice`);
  const told = { waiting: [".merge", "f message=both"], conflicts: "2" };
  assert.deepEqual(await waiting(g), { ...told, chosen: "0", next: choose(0) });
  assert.equal((await status(g, "f")).waiting, undefined, "it waits on its target alone");
  const before = fs.statSync(g.m.tree("main", ".status")).mtimeMs;
  await type(g, "main", choose(0)[1]);
  assert.deepEqual(await waiting(g), { ...told, chosen: "1", next: choose(1) });
  assert.ok(fs.statSync(g.m.tree("main", ".status")).mtimeMs > before, "who looks at times alone sees a choice too");
  await type(g, "main", choose(1)[0]);
  assert.deepEqual(await waiting(g), { ...told, chosen: "2", next: ["echo continue > .merge"] });
  await type(g, "main", "echo continue > .merge");
  assert.deepEqual((await waiting(g)).waiting, ["-"]);
});

test("a command of the mount's own file, a choice taken back by abort, and another branch", async (t) => {
  const g = await clash(t),
    root = `${g.m.mnt}/.merge`;
  assert.equal((await ctl(root, "f main")).errno, "ECANCELED");
  assert.deepEqual((await waiting(g)).waiting, ["MNT/.merge", "f main"]);
  await stopsOn(g, "f", "main", 2);
  await chooses(g, "main", 0, "ours");
  assert.equal((await waiting(g)).chosen, "1");
  assert.deepEqual(await waiting(g, "f").then(({ waiting, chosen }) => [...waiting, chosen]), [".merge", "main", "0"]);
  await type(g, "main", "echo abort > .merge");
  assert.deepEqual((await waiting(g)).waiting, ["-"]);
  for (const k of [0, 1]) await chooses(g, "f", k, "theirs");
  await continues(g, "f", ["merged", "fast-forward", "empty-merge"]);
});
