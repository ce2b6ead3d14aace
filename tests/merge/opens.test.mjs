// SPDX-License-Identifier: Apache-2.0
// What a merge costs in system calls: it opens no data file, and makes as many calls in a table of many fragments as in
// one of few, but for a placement of each file that it brings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load, tip } from "../interop/manifest.mjs";
import { watchedMount } from "../harness/calls.mjs";
import { answerOf } from "../harness/control.mjs";
import { converse } from "../harness/proc.mjs";
import { rows, span } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkCommitted, control, onEach } from "../harness/tip.mjs";
import { generate, place, workspace } from "../harness/workspace.mjs";

const MODES = ["graft", "link"];
const dataFiles = (calls) => calls.map((c) => c.file).filter((f) => /(^|\/)data\/./.test(f));
const named = (dir) => load(dir).fragments.flatMap((f) => f.files.map((x) => x.path));
const baseName = (file) => file.split("/").at(-1);

// Generated, more stock commits made, and mounted so that calls are counted.
async function watched(t, generator, engine, { options = ["nosync"], commits = [], ...generated } = {}) {
  const w = workspace(t),
    g = await generate(w, generator, engine, generated);
  for (const [branch, op, args] of commits) await stock[engine].op(g.ds, branch, op, args);
  return { ...g, m: await watchedMount(w, g.ds, { options }) };
}

// The calls of one merge alone: the control file is opened before, and closed and read when it is over.
const TYPIST = 'exec 3>"$1"; echo open; read -r line; echo "$line" >&3; echo "exit $?"; read -r line';
async function merge(g, line, result = "merged") {
  const file = control(g, "main"),
    before = tip(g.ds),
    shell = converse("bash", ["-c", TYPIST, "sh", file]);
  assert.equal(await shell.line(), "open");
  const seen = await g.m.during(() => {
    shell.say(line);
    return shell.line();
  });
  await shell.close();
  const answer = await answerOf(file);
  assert.equal(`${seen.value} ${answer.result}`, `exit 0 ${result}`, answer.text);
  checkCommitted(g, "main", before, { code: 0, stderr: "", answer });
  return seen;
}

const SCENES = {
  "append and append": ["many_fragments", { args: ["8"], commits: [["main", "add", { rows: rows(500, 1) }]] }, "wide"],
  "appends and deletes on both sides, .arrow deletion files": ["overlap_deletes", {}, "feature"],
  "deletes on both sides, .bin deletion files": ["bitmap_deletes", {}, "feature"],
  "deletes on both sides, .arrow into .bin": ["bitmap_deletes", {}, "few"],
  "columns on both sides": ["add_columns", {}, "score"],
  "a column and deletes": ["add_columns", {}, "backfill"],
  "fast-forward": ["many_fragments", { args: ["8"] }, "wide", "fast-forward"],
};
for (const [what, [generator, options, branch, result]] of Object.entries(SCENES))
  for (const [mode, engine] of [
    ["graft", "lance12"],
    ["link", "lance10"],
  ])
    test(`${what}, mode=${mode}: no data file is opened [written by ${engine}]`, async (t) => {
      const g = await watched(t, generator, engine, options);
      const { opens, changes } = await merge(g, `${branch} mode=${mode}`, result);
      assert.deepEqual(dataFiles(opens), []);
      assert.ok(opens.some((c) => c.file.startsWith("_versions/")), "opening is seen");
      assert.ok(changes.some((c) => c.call === "linkat"), "linking is seen");
    });

// Stock Lance never flushes what it writes, and nothing may become visible before what it names is on the disk: a file
// that is brought is opened to be flushed. Those of the table are left alone.
for (const mode of MODES)
  onEach(`sync, mode=${mode}: only the files that come are opened, to flush them`, async (t, engine) => {
    const g = await watched(t, "overlap_deletes", engine, { options: ["sync"] }),
      before = new Set(named(g.ds));
    const { opens, changes } = await merge(g, `feature mode=${mode}`);
    const came = named(g.ds).filter((f) => !before.has(f));
    assert.equal(came.length, 1);
    assert.deepEqual(dataFiles(opens).map(baseName), came);
    const synced = changes.filter((c) => c.call === "fdatasync").map((c) => baseName(c.file));
    assert.equal(synced.filter((f) => f === came[0]).length, 1, "and it is flushed once");
  });

onEach("sync: many files are flushed as one, and none is opened", async (t, engine) => {
  const g = await watched(t, "many_fragments", engine, { options: ["sync"], args: ["8"] });
  const { opens, changes } = await merge(g, "wide", "fast-forward");
  assert.deepEqual(dataFiles(opens), []);
  assert.equal(changes.filter((c) => c.call === "syncfs").length, 1);
  const order = changes.map((c) => c.kind.replace(/^linkat (_versions\/#\.manifest)$/, "published"));
  assert.ok(order.indexOf("published") > changes.findIndex((c) => c.call === "syncfs"), "before it is published");
  assert.ok(
    changes.findLastIndex((c) => c.call === "linkat" && /lines\/.*\/data\//.test(c.file)) <
      changes.findIndex((c) => c.call === "syncfs"),
    "and behind the last placement",
  );
});

// The bytes are what copying is about.
onEach("mode=copy opens the files that come, and no other data file", async (t, engine) => {
  const g = await watched(t, "overlap_deletes", engine),
    before = new Set(named(g.ds));
  const { opens } = await merge(g, "feature mode=copy");
  const came = named(g.ds).filter((f) => !before.has(f)),
    opened = dataFiles(opens)
      .map(baseName)
      .filter((f) => !f.startsWith(".tmp-"));
  assert.deepEqual([...new Set(opened)], came);
});

// --- the number of calls ---

const kinds = (calls) => calls.map((c) => c.kind);
const placements = (calls) => calls.filter((c) => c.call === "linkat" && /\/data\//.test(`/${c.file}`)).length;
const tally = (calls) => {
  const out = {};
  for (const k of kinds(calls)) out[k] = (out[k] ?? 0) + 1;
  return out;
};

for (const mode of MODES)
  test(`mode=${mode}: 20 fragments or 400, the same calls; a file more is one placement more`, async (t) => {
    const seen = [];
    for (const [n, added] of [
      [20, 1],
      [400, 1],
      [400, 3],
    ]) {
      const commits = [["main", "add", { rows: rows(9000, 1) }]];
      for (let i = 1; i < added; i++) commits.push(["feature", "add", { rows: rows(9100 + i, 1) }]);
      const g = await watched(t, "big_manifest", "lance12", { args: [String(n)], commits });
      const { opens, changes } = await merge(g, `feature mode=${mode}`);
      assert.equal(load(g.ds).fragments.length, n + 1 + added);
      assert.equal(placements(changes), added);
      seen.push({ opens, changes });
      await g.m.unmount();
    }
    const [few, many, more] = seen;
    assert.deepEqual(kinds(many.changes), kinds(few.changes));
    assert.deepEqual(kinds(many.opens), kinds(few.opens));
    const place = few.changes.find((c) => placements([c])).kind,
      expected = tally(many.changes);
    expected[place] += 2;
    assert.deepEqual(tally(more.changes), expected);
    assert.deepEqual(tally(more.opens), tally(many.opens));
  });

// Deletion files are kept for the next merge's base: each once, not at every merge.
test("a deletion file in every fragment: only the first merge looks at them all", async (t) => {
  const seen = [];
  for (const n of [10, 60]) {
    const w = workspace(t),
      root = `${w.dir}/data`,
      g = place(`${root}/t.lance`, root),
      op = (...args) => stock.lance12.op(g.ds, ...args);
    await stock.lance12.create(g.ds, rows(0, 2));
    for (let i = 1; i < n; i++) await op("main", "add", { rows: rows(2 * i, 2) });
    await op("main", "delete", { where: `id IN (${span(0, n - 1).map((i) => 2 * i)})` });
    await op("main", "fork", { name: "feature", from: "main" });
    g.m = await watchedMount(w, g.ds, { options: ["nosync"] });
    const turns = [];
    for (let turn = 0; turn < 3; turn++) {
      await op("feature", "add", { rows: rows(1000 + turn, 1) });
      await op("main", "add", { rows: rows(2000 + turn, 1) });
      turns.push(await merge(g, "feature"));
    }
    const kept = (calls) => calls.filter((c) => c.call === "linkat" && c.file.includes("_deletions/")).length;
    assert.equal(kept(turns[0].changes), 2 * n, "of feature and of main");
    assert.equal(kept(turns[1].changes) + kept(turns[2].changes), 0);
    seen.push(turns[2]);
    await g.m.unmount();
  }
  assert.deepEqual(kinds(seen[1].changes), kinds(seen[0].changes));
  assert.deepEqual(kinds(seen[1].opens), kinds(seen[0].opens));
});
