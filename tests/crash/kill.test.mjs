// SPDX-License-Identifier: Apache-2.0
// The daemon is killed (SIGKILL) in the middle of a merge. Whatever the moment: stock Lance reads the data set whole, the
// target is as before or as after, a new mount works, and the merge can be made.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { tip, versions } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { halfMade } from "../harness/invariants.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, merges } from "../harness/tip.mjs";
import { generate, probe, stopperPath, workspace } from "../harness/workspace.mjs";

const MAIN = [...without(rows(0, 300), span(15, 24), span(250, 259)), ...rows(2000, 2, "m")];
const UNION = [
  ...without(rows(0, 300), span(10, 24), span(150, 159), span(250, 259)),
  ...rows(1000, 3, "f"),
  ...rows(2000, 2, "m"),
];
const MANY_CALLS = 400; // more than a merge of this size can need

// After a kill: before or after, nothing between; then a new mount, the merge, and a stock commit on top.
async function checkRecovery(w, g, mode, where) {
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

for (const [mode, engine] of [
  ["graft", "lance12"],
  ["link", "lance10"],
  ["copy", "lance12"],
]) {
  test(
    `a stop before each call that changes the file system, mode=${mode} [written by ${engine}]`,
    { timeout: 300_000 },
    async (t) => {
      const w = workspace(t),
        g = await generate(w, "overlap_deletes", engine),
        preload = await stopperPath();
      const counts = path.join(w.dir, "counts"),
        moments = { before: 0, after: 0 };
      for (let n = 1; ; n++) {
        assert.ok(n < MANY_CALLS, "the merge never came to its end");
        await g.reset();
        const armed = path.join(w.dir, `armed-${n}`);
        const m = await mount(w, g.ds, {
          env: { LD_PRELOAD: preload, LANCEFS_STOP_ARMED: armed, LANCEFS_STOP_COUNT: counts },
        });
        fs.writeFileSync(armed, `${n}\n`);
        const r = await ctl(path.join(m.mnt, "tree/main/.merge"), `feature mode=${mode}`);
        if (r.code === 0) {
          await m.unmount();
          break;
        } // there is no n-th call
        await m.kill();
        (await checkRecovery(w, g, mode, `stopped before call ${n}`)) ? moments.after++ : moments.before++;
      }
      t.diagnostic(`${moments.before} stops before the commit, ${moments.after} after it`);
      assert.ok(moments.before >= 3, `the stops hit the merge: ${fs.readFileSync(counts, "utf8").slice(-200)}`);
    },
  );
}

// The program as it is, killed at the k-th sign of life in the target's folders.
test("kill -9 at the first, second, ... change that can be seen in the storage", { timeout: 120_000 }, async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12");
  for (let k = 1; k <= 8; k++) {
    await g.reset();
    const m = await mount(w, g.ds);
    let seen = 0;
    const watcher = fs.watch(g.ds, { recursive: true }, () => {
      if (++seen === k)
        try {
          process.kill(m.pid, "SIGKILL");
        } catch {
          /* it has ended */
        }
    });
    await ctl(path.join(m.mnt, "tree/main/.merge"), "feature");
    watcher.close();
    await m.kill();
    await checkRecovery(w, g, "graft", `killed at change ${k}`);
  }
});

test("a mount point that a killed daemon left behind can be mounted again", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    m = await mount(w, g.ds);
  process.kill(m.pid, "SIGKILL");
  await must(probe("wait-exit", String(m.pid)));
  assert.equal(m.isMounted(), true, "the dead mount is still there");
  g.m = await mount(w, g.ds, { at: m.mnt });
  await merges(g, "main", "feature");
  await g.m.unmount();
  assert.equal(m.isMounted(), false, "nothing lies below it");
});

test("SIGTERM unmounts cleanly, nothing is left mounted", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance10"),
    m = await mount(w, g.ds);
  process.kill(m.pid, "SIGTERM");
  await must(probe("wait-exit", String(m.pid)));
  assert.equal(m.isMounted(), false);
  await checkStorage(g, "main", MAIN);
});
