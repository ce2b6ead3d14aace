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
