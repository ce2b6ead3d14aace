// SPDX-License-Identifier: Apache-2.0
// The log: what a user got as an error number stands there with its cause, and SIGHUP makes a new file.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { LIMIT_MS, must, run } from "../harness/proc.mjs";
import { control } from "../harness/tip.mjs";
import { generate, workspace } from "../harness/workspace.mjs";

// The event of a signal is that the file is there: the kernel tells who watches its directory.
async function appears(file) {
  const signal = AbortSignal.timeout(LIMIT_MS);
  const changes = fs.promises.watch(path.dirname(file), { signal });
  if (fs.existsSync(file)) return;
  for await (const _ of changes) if (fs.existsSync(file)) return;
}

test("a failed command, with its cause; after SIGHUP lines go to a new file of that name", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    log = path.join(w.dir, "own.log"),
    m = await mount(w, g.ds, { options: [`log_file=${log}`] }),
    read = (file) => fs.readFileSync(file, "utf8");
  const first = await ctl(control({ m }, "main"), "nosuch");
  assert.equal(first.errno, "ENOENT");
  const line = read(log).split("\n").find((l) => l.includes("nosuch"));
  assert.match(line, /^\S+Z warning file=\.merge branch=main command="nosuch" errno=2 cause=./);
  fs.renameSync(log, `${log}.1`);
  const there = appears(log);
  process.kill(m.pid, "SIGHUP");
  await there;
  const before = read(`${log}.1`);
  await ctl(control({ m }, "main"), "neither");
  assert.ok(m.isMounted(), "SIGHUP does not end it");
  assert.match(read(log), /command="neither"/);
  assert.equal(read(`${log}.1`), before);
  await must(run("ls", [m.tree("main")]));
});
