// SPDX-License-Identifier: Apache-2.0
// The program as it is, without a library that stops it: killed, ended, and mounted again.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { must } from "../harness/proc.mjs";
import { checkStorage, merges } from "../harness/tip.mjs";
import { generate, probe, workspace } from "../harness/workspace.mjs";
import { checkRecovery, MAIN } from "./stops.mjs";

// At the k-th sign of life in the target's folders.
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
