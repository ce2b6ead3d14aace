// SPDX-License-Identifier: Apache-2.0
// lakeFS's own tests by their names, those of the merge base and of the verbs, told on a mount. (Those of the merge itself
// are a table of the unit tests, tests/unit/test_merge_lakefs.c.) What has no counterpart here is listed with the reason.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configure } from "../interop/configure.mjs";
import { load, tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { changed, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, checkTip, control, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, pickFails, revert, revertFails, scratch } from "../harness/verbs.mjs";
import { ENGINES } from "../harness/workspace.mjs";

// --- the merge base: graphs of commits that change one key of the config each, so that nothing clashes ---

const graph = (name, build) =>
  test(`merge base: ${name}`, async (t) => {
    const g = await scratch(t, ENGINES[0], rows(0, 3));
    let keys = 0;
    const commit = async (branch) => {
      configure(g.storage(branch), { config: { [`k${keys++}`]: "1" } });
      return `${branch}@${tip(g.storage(branch))}`;
    };
    const join = async (target, source) => {
      const r = await ctl(control(g, target), source);
      assert.equal(r.code, 0, r.answer.text);
      return `${target}@${r.answer.version}`;
    };
    const fork = async (name, from) => {
      const [branch, version] = from.split("@");
      await g.op("main", "fork", { name, from: branch, version: version && Number(version) });
    };
    await build({ g, commit, join, fork, same: sameBase(g, fork) });
  });
const orders = (...list) => (list.length < 2 ? [list] : list.flatMap((x) => orders(...list.filter((y) => y !== x)).map((o) => [x, ...o])));
const GRID_PAIRS = [[9, 0, 0, 9], [9, 4, 4, 9], [5, 7, 8, 2], [3, 3, 3, 3], [9, 9, 2, 6], [6, 1, 6, 8], [7, 8, 8, 7]];
// The base that a merge of two states has, asked both ways, must be one of these.
const sameBase = (g, fork) => async (a, b, ...bases) => {
  for (const [one, other] of [
    [a, b],
    [b, a],
  ]) {
    const probe = `probe${(g.probes = (g.probes ?? 0) + 1)}`;
    await fork(probe, one);
    const r = await ctl(control(g, probe), `${other} dry-run`);
    assert.equal(r.code, 0, r.answer.text);
    if (r.answer.result === "up-to-date") {
      assert.ok(bases.includes(other), `${one} holds ${other}`);
      continue;
    }
    assert.ok(bases.includes(r.answer.base), `${other} into ${one}: base ${r.answer.base}, not ${bases}`);
  }
};

graph("root_match", async ({ commit, fork, same }) => {
  await fork("l", "main@1");
  await fork("r", "main@1");
  await same(await commit("l"), await commit("r"), "main@1");
});
graph("close_ancestor", async ({ commit, fork, same }) => {
  const near = await commit("main");
  await fork("l", near);
  await commit("l");
  const left = await commit("l");
  await same(left, await commit("main"), near);
});
graph("criss_cross", async ({ g, commit, join, fork, same }) => {
  await fork("l", "main");
  await fork("r", "main");
  const l = await commit("l"),
    r = await commit("r");
  const left = await join("l", r),
    right = await join("r", l);
  await same(left, right, `${l} and ${r}`, `${r} and ${l}`); // both: the virtual base that merging them gives
});
graph("criss_cross of three", async ({ commit, join, fork, same }) => {
  const tips = [];
  for (const name of ["x", "y", "z"]) {
    await fork(name, "main");
    tips.push(await commit(name));
  }
  const [x, y, z] = tips;
  for (const name of ["l", "r"]) {
    await fork(name, "main");
    await commit(name);
  }
  for (const tip of [x, y, z]) await join("l", tip);
  for (const tip of [z, y, x]) await join("r", tip);
  await same(await commit("l"), await commit("r"), ...orders(x, y, z).map((o) => o.join(" and ")));
});
graph("contained", async ({ commit, fork, same }) => {
  await fork("l", "main");
  const inside = await commit("l");
  await commit("l");
  await same(await commit("l"), inside, inside);
});
graph("already_merged", async ({ commit, join, fork, same }) => {
  await fork("f", "main");
  const merged = await commit("f");
  await commit("main");
  await join("main", "f");
  await same(await commit("main"), await commit("f"), merged);
});
graph("higher ancestor is closer on dag", async ({ commit, join, fork, same }) => {
  // A long way from l to the later common version, a short one to the older
  await fork("l", "main");
  const older = await commit("main");
  await fork("side", older);
  const later = await commit("main");
  await join("l", later);
  for (let i = 0; i < 3; i++) await commit("l");
  await commit("side");
  await join("side", later);
  await same(await commit("l"), await commit("side"), later);
});
graph("merges in history (from git core tests)", async ({ commit, join, fork, same }) => {
  //   S-A-B-C-D   one line; E, F, G beside it, that merged parts of it
  const s = await commit("main");
  await fork("g", s);
  const a = await commit("main");
  await commit("g");
  const b = await commit("main");
  await fork("f", a);
  await commit("f");
  await join("f", b);
  await join("g", "f");
  await commit("main");
  await same(await commit("main"), await commit("g"), b);
});
graph("same_node", async ({ commit, fork, same }) => {
  await fork("l", "main");
  const l = await commit("l");
  await same(l, l, l);
});
graph("no redundant parent access", async ({ commit, fork, same }) => {
  const root = await commit("main");
  await fork("l", root);
  await fork("r", root);
  for (let i = 0; i < 5; i++) await commit("l");
  for (let i = 0; i < 3; i++) await commit("r");
  await same(await commit("l"), await commit("r"), root);
});
graph("complex graph with multiple merges and common ancestor in the middle", async ({ commit, join, fork, same }) => {
  await fork("a", "main");
  await fork("b", "main");
  await commit("a");
  await commit("b");
  await join("a", await commit("main"));
  const middle = await join("b", await commit("a"));
  await fork("l", middle);
  await fork("r", middle);
  await commit("l");
  await join("l", await commit("a"));
  await commit("r");
  await join("r", await commit("main"));
  await same(await commit("l"), await commit("r"), middle);
});

// git's t6600: version (x, y) is what a grid has below and left of it; two of them have in common the lesser of each.
graph("TestGrid", async ({ commit, join, fork, same }) => {
  const SIZE = 10,
    grid = [];
  for (let x = 0; x < SIZE; x++) {
    grid.push([]);
    if (x) await fork(`g${x}`, grid[x - 1][0]);
    else await fork("g0", "main");
    for (let y = 0; y < SIZE; y++)
      grid[x].push(x && y ? await join(`g${x}`, grid[x - 1][y]) : await commit(`g${x}`));
  }
  for (const [x, y, u, v] of GRID_PAIRS) await same(grid[x][y], grid[u][v], grid[Math.min(x, u)][Math.min(y, v)]);
});

// --- the verbs: objects are rows, a commit is one operation of a stock engine; the engines take turns ---

const TEN = rows(0, 10);
let turn = 0;
const verb = (name, fn) => {
  const engine = ENGINES[turn++ % ENGINES.length];
  test(`verbs: ${name} [written by ${engine}]`, async (t) => fn(await scratch(t, engine, TEN), t));
};
const add = (g, branch, id, n = 1) => g.op(branch, "add", { rows: rows(id, n, branch) });
const drop = (g, branch, id) => g.op(branch, "delete", { where: `id = ${id}` });
const set = (g, branch, id, v) => g.op(branch, "update", { where: `id = ${id}`, values: { v } });
const story = (g, branch = "main") => load(g.storage(branch)).transaction.properties;
const MESSAGE = "__lance_commit_message";

verb("esti TestMergeAndList", async (g) => {
  await g.fork("f");
  for (let id = 100; id < 110; id++) await add(g, "f", id);
  const FIRST = [...TEN, ...rows(100, 10, "f")];
  await merge(g, "main", "f strategy=source-wins", "fast-forward");
  assert.equal(story(g)["lancefs.policy"], "source-wins");
  await checkTip(g, "main", FIRST);
  await add(g, "f", 110);
  await merge(g, "main", "f strategy=dest-wins");
  assert.equal(story(g)["lancefs.policy"], "dest-wins");
  await checkThenUnmount(g, { main: [...FIRST, ...rows(110, 1, "f")] });
});
verb("esti TestLakectlMerge: regular", async (g) => {
  await g.fork("f");
  await add(g, "main", 50);
  await add(g, "f", 60);
  await merge(g, "main", 'f message="esti test" property.key=value');
  const p = story(g);
  assert.deepEqual([p[MESSAGE], p.key, p["lancefs.source"]], ["esti test", "value", `f@${tip(g.storage("f"))}`]);
  assert.match(load(g.ds).metadata["lancefs.vector"], /main:\d+/, "both parents are in the lineage");
  await checkThenUnmount(g, { main: [...TEN, ...rows(50, 1, "main"), ...rows(60, 1, "f")] });
});
verb("esti TestLakectlMerge: squash (a range of commits as one)", async (g) => {
  await g.fork("f");
  await add(g, "f", 60);
  await drop(g, "f", 3);
  const t = tip(g.storage("f")),
    before = tip(g.ds);
  await pick(g, "main", `f@${t - 1}..${t} squash message="esti test" property.key=value`);
  assert.equal(tip(g.ds), before + 1);
  assert.deepEqual([story(g)[MESSAGE], story(g).key], ["esti test", "value"]);
  assert.equal(load(g.ds).metadata["lancefs.vector"], "main:1", "one parent");
  await checkThenUnmount(g, { main: [...without(TEN, 3), ...rows(60, 1, "f")] });
});
verb("esti TestLakectlMergeAndStrategies", async (g) => {
  await g.fork("f");
  for (const [round, row] of [[1, 3], [2, 4]]) {
    // The destination deletes what the source changes
    await set(g, "f", row, `f${round}`);
    await drop(g, "main", row);
    const before = await stock[g.engine].read(g.ds, "main");
    await mergeFails(g, "main", "f", "ECANCELED", "conflict");
    assert.deepEqual((await stock[g.engine].read(g.ds, "main")).rows, before.rows);
    await g.op("main", "fork", { name: `kept${round}`, from: "main" });
    await merge(g, `kept${round}`, "f strategy=dest-wins", ["merged", "empty-merge"]);
    await merge(g, "main", "f strategy=source-wins");
    const changedRows = round === 1 ? changed(TEN, 3, { v: "f1" }) : changed(changed(TEN, 3, { v: "f1" }), 4, { v: "f2" });
    await checkTip(g, "main", changedRows);
    await checkTip(g, `kept${round}`, without(changedRows, row));
    await merge(g, "f", "main", ["fast-forward", "up-to-date", "merged"]);
  }
});
verb("esti TestLakectlCherryPick: success", async (g) => {
  await g.fork("f");
  for (const id of [100, 101, 102]) await add(g, "f", id);
  const t = tip(g.storage("f"));
  await pick(g, "main", "f"); // its newest
  await pick(g, "main", `f@${t - 1}`);
  await checkThenUnmount(g, { main: [...TEN, ...rows(101, 2, "f")] });
});
verb("esti TestLakectlCherryPick: conflict", async (g) => {
  await g.fork("f");
  await set(g, "f", 3, "f");
  await set(g, "main", 3, "main");
  await pickFails(g, "main", "f", "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: changed(TEN, 3, { v: "main" }) });
});
verb("esti TestRevert: the older of two commits", async (g) => {
  await add(g, "main", 100);
  const older = tip(g.ds);
  await add(g, "main", 101);
  await revert(g, "main", String(older));
  await checkThenUnmount(g, { main: [...TEN, ...rows(101, 1, "main")] });
});
verb("controller MergeInvalidStrategy", async (g) => {
  await g.fork("f");
  await add(g, "f", 100);
  await mergeFails(g, "main", "f strategy=bad", "EINVAL", "error");
});
verb("controller MergeDiffWithParent", async (g) => {
  await g.fork("f");
  await add(g, "main", 50);
  await add(g, "f", 100);
  await drop(g, "f", 2);
  const before = tip(g.ds);
  await merge(g, "main", "f");
  await g.op("main", "fork", { name: "parent", from: "main", version: before });
  const [was, is] = [await stock[g.engine].read(g.ds, "parent"), await stock[g.engine].read(g.ds, "main")].map(
    (r) => new Map(r.rows.map((x) => [x[0], JSON.stringify(x)])),
  );
  const ids = (a, b) => [...a.keys()].filter((id) => a.get(id) !== b.get(id));
  assert.deepEqual([ids(is, was), ids(was, is)], [[100], [2]]);
});
verb("controller MergeIntoExplicitBranch (a version of the target)", async (g) => {
  await g.fork("f");
  await add(g, "f", 100);
  for (const target of ["main@1", "main$", "main-committed"]) {
    const r = await ctl(`${g.m.mnt}/.merge`, `f ${target}`);
    assert.ok(["EINVAL", "ENOENT"].includes(r.errno), `${target}: ${r.stderr}`);
  }
  await checkThenUnmount(g, { main: TEN });
});
verb("controller MergeSquashing: default", async (g) => {
  await g.fork("f");
  for (const id of [100, 101, 102]) await add(g, "f", id);
  const before = tip(g.ds);
  await merge(g, "main", "f", "fast-forward");
  assert.equal(tip(g.ds), before + 1, "one version in all");
  await checkThenUnmount(g, { main: [...TEN, ...rows(100, 3, "f")] });
});
verb("controller MergeSquashing: regular (replay: a version for each commit)", async (g) => {
  await g.fork("f");
  for (const id of [100, 101, 102]) await add(g, "f", id);
  const before = tip(g.ds),
    r = await ctl(control(g, "main"), "f replay");
  assert.equal(r.code, 0, r.answer.text);
  assert.equal(tip(g.ds), before + 3);
  await checkThenUnmount(g, { main: [...TEN, ...rows(100, 3, "f")] });
});
verb("controller MergeBranchWithNoChanges", async (g) => {
  await g.fork("f");
  await merge(g, "main", "f", "up-to-date");
  await add(g, "main", 50);
  await merge(g, "main", "f", "up-to-date");
  await merge(g, "main", "f ff=never strategy=source-wins", "up-to-date");
});
verb("controller Revert: ref, committed ref", async (g) => {
  await add(g, "main", 100);
  await add(g, "main", 101);
  await revert(g, "main", String(tip(g.ds)));
  await revert(g, "main", `main@2`);
  await checkThenUnmount(g, { main: TEN });
});
verb("controller Revert: revert_no_parent", async (g) => revertFails(g, "main", "1", "EINVAL"));
verb("controller Revert: read-only", async (g, t) => {
  await add(g, "main", 100);
  await g.m.unmount();
  const m = await mount(g.w, g.ds, { options: ["ro"] });
  for (const file of [".revert", ".cherry-pick", ".merge"])
    assert.equal((await ctl(m.tree("main", file), "2")).errno, "EROFS");
  t.diagnostic("force: there is none, a mount is read-only or not");
});
verb("controller Revert: no changes", async (g) => {
  await add(g, "main", 100);
  const version = tip(g.ds);
  await revert(g, "main", String(version));
  await revert(g, "main", String(version), "up-to-date");
});
verb("controller RevertConflict", async (g) => {
  await set(g, "main", 3, "one");
  const version = tip(g.ds);
  await set(g, "main", 3, "two");
  await revertFails(g, "main", String(version), "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: changed(TEN, 3, { v: "two" }) });
});
verb("controller CherryPick: from branch, from commit", async (g) => {
  await g.fork("f");
  await add(g, "f", 100);
  const one = tip(g.storage("f"));
  await add(g, "f", 101);
  await g.fork("h");
  await pick(g, "main", "f");
  await pick(g, "h", `f@${one}`);
  await checkThenUnmount(g, { main: [...TEN, ...rows(101, 1, "f")], h: [...TEN, ...rows(100, 1, "f")] });
});
verb("controller CherryPick: merge, first parent (what the merge brought)", async (g) => {
  await g.fork("f", "h");
  await add(g, "f", 100);
  await add(g, "h", 200);
  await merge(g, "f", "h");
  await pick(g, "main", "f");
  await checkThenUnmount(g, { main: [...TEN, ...rows(200, 1, "h")] });
});
verb("controller CherryPick: conflict", async (g) => {
  await g.fork("f");
  await drop(g, "f", 3);
  await set(g, "main", 3, "main");
  await pickFails(g, "main", "f", "ECANCELED", "conflict");
});
verb("graveler_v2 merge: successful, retry then ok", async (g) => {
  await g.fork("f");
  await drop(g, "f", 3);
  // Stock commits while the merge is made: whoever comes second plans again
  const [m] = await Promise.all([ctl(control(g, "main"), "f"), add(g, "main", 50), add(g, "main", 51)]);
  assert.equal(m.code, 0, m.answer.text);
  await checkThenUnmount(g, { main: [...without(TEN, 3), ...rows(50, 2, "main")] });
});
verb("graveler_v2 merge: dirty while updating tokens (expect= says what the target must be)", async (g) => {
  await g.fork("f");
  await add(g, "f", 100);
  const version = tip(g.ds);
  await add(g, "main", 50);
  await mergeFails(g, "main", `f expect=${version}`, "ESTALE");
  await merge(g, "main", `f expect=${version + 1}`);
});
verb("graveler_v2 revert and cherry-pick: override, partial override, nil override", async (g) => {
  await g.fork("f", "h", "k");
  await g.op("f", "add", { rows: rows(100, 1, "f") });
  await pick(g, "main", 'f message="mine" property.key=value');
  assert.deepEqual([story(g)[MESSAGE], story(g).key], ["mine", "value"]);
  await pick(g, "h", 'f message="mine"');
  assert.deepEqual([story(g, "h")[MESSAGE], story(g, "h").key], ["mine", undefined]);
  await pick(g, "k", "f");
  assert.deepEqual([story(g, "k")[MESSAGE], story(g, "k").key], [undefined, undefined]);
  assert.equal(story(g, "k")["lancefs.source"], `f@${tip(g.storage("f"))}`);
  await revert(g, "main", `${tip(g.ds)} message="back" property.key=other`);
  assert.deepEqual([story(g)[MESSAGE], story(g).key], ["back", "other"]);
});
verb("TestMergeWithConflictResolver: no choice; chooses source; chooses dest; the first one decides", async (g) => {
  await g.fork("f");
  await set(g, "f", 3, "f");
  await set(g, "main", 3, "main");
  for (const name of ["source", "dest", "first"]) await g.op("main", "fork", { name, from: "main" });
  const theirs = changed(TEN, 3, { v: "f" }),
    ours = changed(TEN, 3, { v: "main" });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await merge(g, "source", "f rows=source-wins");
  await merge(g, "dest", "f rows=dest-wins", ["merged", "empty-merge"]);
  await merge(g, "first", "f strategy=dest-wins rows=source-wins"); // what is said of one class beats what is said of all
  await checkThenUnmount(g, { main: ours, source: theirs, dest: ours, first: theirs });
});

// --- what has no counterpart ---

const NO_COUNTERPART = {
  "Test_merge: dest range added before, alternate StorageID": "a file is the same wherever it lies: base paths are no part of its value",
  "TestMergeWithConflictResolver: returns error": "a choice is a word, and a wrong word is EINVAL (MergeInvalidStrategy)",
  "TestMergeCancelContext: source, dest, both, base left": "keys are not walked one by one: an interrupted command ends with EINTR before its only write, the commit",
  "merge base: parallel (no common history)": "every branch of a data set begins on main; for vectors by themselves: test_merge_lakefs",
  "esti TestLakectlLogNoMerges, NoMergesAndAmount": "about a log command; merges are told by lancefs.op in each version's transaction",
  "controller MergeDirtyBranch, Revert staging, Revert dirty_branch, CherryPick dirty, graveler_v2 dirty compacted":
    "there is no staging area: whatever is written to a Lance branch is a commit",
  "controller MergeBranchWithNoChanges allow-empty, force; Revert allow-empty": "nothing to do is no failure here: up-to-date, and no version",
  "controller Revert branch": "a revert names a version of the branch whose control file it is written to",
  "controller CherryPick parent too big, too small, second parent, too big on merge": "parents have no numbers: a pick of a version is what it changed on its own branch",
  "graveler_v2 merge: retries exhausted": "another writer that wins twenty races in a row cannot be made on purpose; races: race.test.mjs",
};
test("lakeFS's cases without a counterpart", (t) => {
  for (const [name, reason] of Object.entries(NO_COUNTERPART)) t.diagnostic(`${name}: ${reason}`);
});
