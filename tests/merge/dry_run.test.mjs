// SPDX-License-Identifier: Apache-2.0
// dry-run of every verb: it tells what the command then does, and no byte of the storage changes, no file comes or goes.
import assert from "node:assert/strict";
import path from "node:path";
import { tip } from "../interop/manifest.mjs";
import { chooses, conflicts, stopsOn } from "../harness/conflicts.mjs";
import { ctl } from "../harness/control.mjs";
import { rows } from "../harness/rows.mjs";
import { control, onEach } from "../harness/tip.mjs";
import { merge, scratch } from "../harness/verbs.mjs";
import { difference, snapshot } from "../harness/workspace.mjs";

// main moved; f appended, deleted and configured; h appended. m took h in by a merge and went on.
async function scene(t, engine) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "h", "m");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("f", "delete", { where: "id = 3" });
  await g.op("f", "update", { where: "id = 12", values: { v: "f" } });
  await g.op("h", "add", { rows: rows(200, 2, "h") });
  await g.op("main", "delete", { where: "id = 19" });
  await g.op("m", "update", { where: "id = 12", values: { v: "m" } });
  await merge(g, "m", "h");
  await g.op("m", "add", { rows: rows(300, 1, "m") });
  return g;
}
const LINES = (g) => [
  ...["f", "f replay", "f h", "f base=main@2", "f mode=copy", "f mode=link", "f only=rows", "f ff=only", "f strategy=source-wins"].map((l) => ["main", ".merge", l]),
  ["m", ".merge", "f"], // a conflict
  ...["f", `f@3..${tip(g.storage("f"))}`, `f@3..${tip(g.storage("f"))} squash`, "f@3 only=rows"].map((l) => ["main", ".cherry-pick", l]),
  ...[tip(g.storage("m")), tip(g.storage("m")) - 1].map((v) => ["m", ".revert", `${v}`]),
  ...["", "steps=1"].map((l) => ["m", ".undo", l]),
  ...["main", "main squash"].map((l) => ["f", ".rebase", l]),
];
// What a dry run and the command have in common.
const lasting = (text) => text.split("\n").filter((l) => /^(fragments|rows|conflicts|base|source|reason): /.test(l));

onEach("every verb: a dry run writes nothing, and says what the command then does", async (t, engine) => {
  const g = await scene(t, engine),
    said = {};
  const before = snapshot(g.root);
  for (const [branch, file, line] of LINES(g)) {
    const r = await ctl(control(g, branch, file), `${line} dry-run`),
      what = `${branch}/${file}: ${line}`;
    assert.deepEqual(difference(before, snapshot(g.root)), [], `${what} wrote`);
    assert.match(r.answer.text, /^result: (dry-run|conflict)$/m, what + r.answer.text);
    said[what] = r;
  }
  for (const line of ["dry-run", "older-than=0d dry-run"]) {
    const r = await ctl(path.join(g.m.mnt, ".gc"), line);
    assert.equal(r.code, 0, r.answer.text);
    assert.deepEqual(difference(before, snapshot(g.root)), [], `.gc ${line} wrote`);
  }
  for (const [branch, file, line] of [["m", ".merge", "f"], ["main", ".cherry-pick", "f"], ["m", ".undo", "steps=1"]]) {
    const r = await ctl(control(g, branch, file), line),
      dry = said[`${branch}/${file}: ${line}`] ?? assert.fail(line);
    assert.equal(r.errno, dry.errno, r.answer.text);
    assert.equal(r.answer.result, dry.answer["would-be"] ?? dry.answer.result, r.answer.text);
    assert.deepEqual(lasting(r.answer.text), lasting(dry.answer.text), line);
  }
});

onEach("continue dry-run: nothing is written, and the conflicts wait on", async (t, engine) => {
  const g = await scene(t, engine);
  await stopsOn(g, "m", "f", 1);
  await chooses(g, "m", 0, "theirs");
  const before = snapshot(g.root),
    r = await ctl(control(g, "m"), "continue dry-run");
  assert.equal(r.answer.result, "dry-run", r.answer.text);
  assert.deepEqual(difference(before, snapshot(g.root)), []);
  assert.equal(conflicts(g, "m").length, 1);
});
