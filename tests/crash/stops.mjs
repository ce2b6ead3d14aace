// SPDX-License-Identifier: Apache-2.0
// The daemon is killed (SIGKILL) in the middle of a merge. Whatever the moment: stock Lance reads the data set whole, the
// target is as before or as after, a new mount works, and the merge can be made.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { tip, versions } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { halfMade } from "../harness/invariants.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { OVERLAP, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, merges } from "../harness/tip.mjs";
import { generate, stopperPath, workspace } from "../harness/workspace.mjs";

export const MAIN = OVERLAP.main;
const UNION = OVERLAP.union;

// After a kill: before or after, nothing between; then a new mount, the merge, and stock commits on top.
export async function checkRecovery(w, g, mode, where) {
  const published = tip(g.ds) === 7,
    now = published ? UNION : MAIN;
  assert.deepEqual(versions(g.ds), span(1, published ? 7 : 6), `${where}: versions of main`);
  await checkStorage(g, "main", now).catch((e) => {
    e.message = `${where}: ${e.message}`;
    throw e;
  });
  // A kill may leave one half-made file. Stock reads `d...` and `...manifest` as versions: it is called neither.
  const leftovers = halfMade(g.ds);
  assert.ok(leftovers.length <= 1, `${where}: ${leftovers}`);
  for (const name of leftovers) assert.match(name, /^[^d].*(?<!manifest)$/, where);
  g.m = await mount(w, g.ds);
  const shown = (await must(run("ls", ["-A", g.m.tree("main", "_versions")]))).stdout;
  for (const name of leftovers) assert.ok(!shown.includes(name), `${where}: ${name} is not shown`);
  await merges(g, "main", `feature mode=${mode}`, published ? "up-to-date" : "merged", { leftovers });
  await stock.lance10.op(g.ds, "main", "delete", { where: "id = 1001" });
  await stock.lance12.op(g.ds, "main", "add", { rows: rows(9000, 1) });
  await checkStorage(g, "main", [...without(UNION, 1001), ...rows(9000, 1)]);
  await g.m.unmount();
  return published;
}

// Each call that changes the file system in a merge of feature into main: what it is about, without the names that
// differ from run to run, and which one of its kind it is.
export function calls(g, counts) {
  const nth = new Map();
  return fs
    .readFileSync(counts, "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const [, call, file] = /^\d+ (\S+) (.*)$/.exec(line);
      const kind = `${call} ${path.relative(g.root, file).replace(/(?<=-)[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d{6,}/g, "#")}`;
      nth.set(kind, (nth.get(kind) ?? 0) + 1);
      return `${kind} (${nth.get(kind)})`;
    });
}

// The merge with a stop before its n-th call (0: none), by a daemon of its own.
async function stopped(w, g, mode, n) {
  await g.reset();
  const at = path.join(w.dir, `${mode}-${n}`),
    counts = `${at}.counts`,
    env = { LD_PRELOAD: await stopperPath(), LANCEFS_STOP_ARMED: `${at}.armed`, LANCEFS_STOP_COUNT: counts };
  const m = await mount(w, g.ds, { env });
  fs.writeFileSync(`${at}.armed`, `${n}\n`);
  const r = await ctl(path.join(m.mnt, "tree/main/.merge"), `feature mode=${mode}`);
  await (n === 0 ? m.unmount() : m.kill());
  return { code: r.code, made: calls(g, counts) };
}

export const MODES = ["graft", "link", "copy"];
// Most calls are the same whatever the mode: each is stopped before in one of the modes that make it, the one with the
// fewest stops so far. { graft: { made, stops: [n, ...] }, ... }
async function planned(w, g) {
  const plan = {},
    taken = new Set();
  for (const mode of MODES) {
    const { code, made } = await stopped(w, g, mode, 0);
    assert.equal(code, 0, `the merge with mode=${mode} and no stop`);
    plan[mode] = { made, stops: [] };
  }
  for (const call of MODES.flatMap((mode) => plan[mode].made)) {
    if (taken.has(call)) continue;
    taken.add(call);
    const [mode] = MODES.filter((x) => plan[x].made.includes(call)).sort(
      (a, b) => plan[a].stops.length - plan[b].stops.length,
    );
    plan[mode].stops.push(plan[mode].made.indexOf(call) + 1);
  }
  return plan;
}

// A test that stops the merge in this mode before each call that is this mode's.
export async function stopBeforeEachCall(t, mode, engine) {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", engine);
  const { made, stops } = (await planned(w, g))[mode],
    moments = { before: 0, after: 0 };
  for (const n of stops) {
    const where = `mode=${mode}, stopped before call ${n}, ${made[n - 1]}`;
    const r = await stopped(w, g, mode, n);
    assert.notEqual(r.code, 0, `${where}: the merge never came to it`);
    const steady = (calls) => calls.filter((c) => !/^f(data)?sync /.test(c)); // flushes run at once, in any order
    assert.deepEqual(steady(r.made), steady(made.slice(0, r.made.length)), `${where}: the same calls as without a stop`);
    (await checkRecovery(w, g, mode, where)) ? moments.after++ : moments.before++;
  }
  t.diagnostic(`${moments.before} stops before the commit, ${moments.after} after it, of ${made.length} calls`);
  assert.ok(moments.before >= 3 && moments.after >= 1, `the stops hit the merge: ${stops}`);
}
