// SPDX-License-Identifier: Apache-2.0
// Hooks around .rebase and its .undo, which move a branch's name: both are asked about and told of, their no changes nothing,
// and a hook may run commands meanwhile. What moves while one is asked is planned, and asked about, anew.
import assert from "node:assert/strict";
import { test } from "node:test";
import { tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { barrier, hooksIn } from "../harness/hooks.mjs";
import { json, refFile, settled, works } from "../harness/names.mjs";
import { mount } from "../harness/mount.mjs";
import { OVERLAP, rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, control, onEach } from "../harness/tip.mjs";
import { difference, generate, snapshot, workspace } from "../harness/workspace.mjs";

// feature has three commits since the fork, main three others
async function hooked(t, engine, { options = [] } = {}) {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", engine),
    hooks = hooksIn(w);
  return { w, engine, ...g, hooks, m: await mount(w, g.ds, { options: [hooks.option, ...options] }) };
}
const lineOf = (g) => json(refFile(g, "feature")).identifier.version_mapping.at(-1)[1];
const rebase = (g, words = "main") => ctl(control(g, "feature", ".rebase"), words);
const undo = (g) => ctl(control(g, "feature", ".undo"), "steps=1");

async function denied(g, run) {
  const before = snapshot(g.root),
    r = await run(g);
  assert.equal(r.errno, "EPERM", r.answer.text);
  assert.equal(r.answer.result, "refused", r.answer.text);
  assert.match(r.answer.reason, /pre-merge said no \(exit status 3\)/);
  assert.deepEqual(r.answer.hook, ["not today"], r.answer.text);
  assert.deepEqual(difference(before, snapshot(g.root)), [], "a hook's no changes nothing");
}

onEach("a rebase and its undoing are asked about; a no changes nothing, a yes lets them through", async (t, engine) => {
  const g = await hooked(t, engine),
    { hooks } = g,
    old = lineOf(g);
  hooks.set("pre-merge", "echo 'not today'; exit 3");
  hooks.set("post-merge", "");
  await denied(g, rebase);
  const [asked] = hooks.asked("pre-merge");
  const { fragments, rows: counted, steps, ...facts } = asked;
  assert.deepEqual(facts, {
    hook: "pre-merge",
    verb: "rebase",
    command: "main",
    operation: "rebase",
    target: { branch: "feature", version: 6 },
    source: "feature@6",
    onto: "main@6",
    result: "rebased",
    mount: g.m.mnt,
    tree: g.m.tree("feature"),
  });
  assert.deepEqual(steps.map((s) => s.source), ["feature@4", "feature@5", "feature@6"]);
  for (const unit of ["added", "removed"])
    assert.equal(counted[unit], steps.reduce((n, s) => n + s.rows[unit], 0), `rows ${unit}: all steps together`);
  assert.equal(fragments.added, steps.reduce((n, s) => n + s.fragments.added, 0));
  assert.equal((await rebase(g, "main dry-run")).code, 0);
  assert.equal(hooks.asked("pre-merge").length, 1, "a dry run asks nobody");
  assert.deepEqual(hooks.asked("post-merge"), [], "of what was refused nobody is told");

  hooks.set("pre-merge", "");
  const done = await rebase(g);
  assert.equal(done.code, 0, done.answer.text);
  assert.equal(hooks.asked("pre-merge").length, 2);
  const [told] = hooks.asked("post-merge");
  assert.deepEqual([told.operation, told.result, told.version], ["rebase", "rebased", tip(g.storage("feature"))]);
  assert.equal(told.transaction, done.answer.transaction);
  await checkStorage(g, "feature", OVERLAP.union);

  hooks.set("pre-merge", "echo 'not today'; exit 3");
  await denied(g, undo);
  const about = hooks.asked("pre-merge").at(-1);
  assert.deepEqual(
    [about.verb, about.operation, about.target, about.line, about.result],
    ["undo", "undo-rebase", { branch: "feature", version: tip(g.storage("feature")) }, old, "undone"],
  );
  hooks.set("pre-merge", "");
  const back = await undo(g);
  assert.equal(back.code, 0, back.answer.text);
  assert.equal(lineOf(g), old);
  const last = hooks.asked("post-merge").at(-1);
  assert.deepEqual([last.operation, last.result, last.version], ["undo-rebase", "undone", Number(back.answer.version)]);
  await checkThenUnmount(g, { feature: OVERLAP.feature, main: OVERLAP.main });
});

test("a branch without commits of its own moves too: it is asked about", async (t) => {
  const g = await hooked(t, "lance12"),
    { hooks } = g;
  await stock.lance12.op(g.ds, "main", "fork", { name: "idle", from: "main", version: 3 });
  hooks.set("pre-merge", "exit 1");
  const r = await ctl(control(g, "idle", ".rebase"), "main");
  assert.equal(r.errno, "EPERM", r.answer.text);
  const [asked] = hooks.asked("pre-merge");
  assert.deepEqual([asked.result, asked.steps, asked.rows], ["fast-forward", [], { added: 0, removed: 0 }]);
});

test("nothing is locked while a hook is asked: it merges, tags and sweeps", async (t) => {
  const g = await hooked(t, "lance12", { options: ["hooks_timeout=30"] });
  await works(g, "mkdir tree/other");
  g.hooks.set("pre-merge", `[ "$LANCEFS_TARGET" = feature ] || exit 0
    set -e; cd "$LANCEFS_MOUNT"; echo v1 > tree/main/.tag; echo older-than=7d > .gc; echo 'feature mode=link' > tree/other/.merge`);
  const r = await rebase(g);
  assert.equal(r.code, 0, r.answer.text);
  await checkThenUnmount(g, { feature: OVERLAP.union, other: OVERLAP.union, main: OVERLAP.main });
});

// Each moves what the plan was made on, while the hook is asked the first time.
const MEANWHILE = {
  "a stock commit to the branch": {
    act: (g) => stock[g.engine].op(g.ds, "feature", "add", { rows: rows(9000, 2) }),
    after: [...OVERLAP.union, ...rows(9000, 2)],
    asked: [[6, 3], [7, 4]],
  },
  "a merge into the branch": {
    act: (g) => works(g, "echo extra > tree/feature/.merge"),
    after: [...OVERLAP.union, ...rows(9100, 1)],
    asked: [[6, 3], [7, 4]],
  },
  "another branch made": { act: (g) => works(g, "mkdir tree/new"), after: OVERLAP.union, asked: [[6, 3], [6, 3]] },
};
for (const [what, { act, after, asked }] of Object.entries(MEANWHILE))
  onEach(`${what} while a hook is asked: asked anew, and every row is there`, async (t, engine) => {
    const g = await hooked(t, engine),
      stop = await barrier(g.w, "first");
    await stock[engine].op(g.ds, "main", "fork", { name: "extra", from: "main", version: 3 });
    await stock[engine].op(g.ds, "extra", "add", { rows: rows(9100, 1) });
    g.hooks.set("pre-merge", `[ -e '${g.w.dir}/once' ] || { : > '${g.w.dir}/once'; ${stop.script}; }`);
    const running = rebase(g);
    await stop.reached();
    await act(g);
    await stop.release();
    const r = await running;
    assert.equal(r.code, 0, r.answer.text);
    const questions = g.hooks.asked("pre-merge").filter((q) => q.verb === "rebase");
    assert.deepEqual(questions.map((q) => [q.target.version, q.steps.length]), asked);
    settled(g);
    await checkThenUnmount(g, { feature: after, main: OVERLAP.main });
  });

for (const [what, act] of Object.entries({
  "a tag": (g) => works(g, "echo mine > tree/feature/.tag"),
  "a child branch": (g) => works(g, "echo child > tree/feature/.branch"),
}))
  test(`${what} comes to stand on the branch while a hook is asked: EBUSY, and it names it`, async (t) => {
    const g = await hooked(t, "lance12"),
      stop = await barrier(g.w, "first");
    g.hooks.set("pre-merge", stop.script);
    const running = rebase(g),
      before = lineOf(g);
    await stop.reached();
    await act(g);
    await stop.release();
    const r = await running;
    assert.equal(r.errno, "EBUSY", r.answer.text);
    assert.match(r.answer.text, /mine|child/);
    assert.equal(lineOf(g), before);
    settled(g);
    await checkThenUnmount(g, { feature: OVERLAP.feature });
  });

test("the old line goes by .gc while a hook is asked about going back to it: ENODATA, nothing changes", async (t) => {
  const g = await hooked(t, "lance12");
  assert.equal((await rebase(g)).code, 0);
  const now = lineOf(g);
  g.hooks.set("pre-merge", 'echo older-than=0s > "$LANCEFS_MOUNT/.gc"');
  const r = await undo(g);
  assert.equal(r.errno, "ENODATA", r.answer.text);
  assert.equal(lineOf(g), now);
  settled(g);
  await checkThenUnmount(g, { feature: OVERLAP.union });
});
