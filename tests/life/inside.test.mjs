// SPDX-License-Identifier: Apache-2.0
// A mount that contains itself, or another of ours (C61): refused, or an error at once; nobody waits for his own answer.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { ctl } from "../harness/control.mjs";
import { isMounted, launch, mount } from "../harness/mount.mjs";
import { run, sh } from "../harness/proc.mjs";
import { OVERLAP, rows } from "../harness/rows.mjs";
import { checkTip, checkView, control, merges, mounted, onEach } from "../harness/tip.mjs";
import { generate, place, workspace } from "../harness/workspace.mjs";

const SOON_MS = 20_000; // a hang is for ever; this is for a machine that is busy

// None of these may wait for ever, whatever they say.
async function everybodyEnds(...mounts) {
  for (const m of mounts)
    for (const script of ['find "$1" -ls', 'df "$1"', 'find "$1" -type f -exec cat {} +', 'ls -lR "$1" && stat -f "$1"']) {
      const r = await sh(`${script} > /dev/null 2>&1; exit 0`, [m.mnt], { limitMs: SOON_MS });
      assert.equal(r.timedOut, false, `${script} on ${m.mnt} ends`);
    }
  for (const m of mounts)
    for (const task of fs.readdirSync(`/proc/${m.pid}/task`)) {
      const state = /^State:\s+(\S)/m.exec(fs.readFileSync(`/proc/${m.pid}/task/${task}/status`, "utf8"))?.[1];
      assert.notEqual(state, "D", `thread ${task} of the daemon waits for what nobody will answer`);
    }
}

onEach("C61 a base path at the mount's own point: an error at once, and everything else works", async (t, engine) => {
  const w = workspace(t),
    at = path.join(w.dir, "here"),
    { root } = await generate(w, "hostile", engine, { args: [at] }),
    g = { ...place(path.join(root, "base_mount/t.lance")), root };
  g.m = await mount(w, g.ds, { at });
  await everybodyEnds(g.m);
  const inherited = fs.readdirSync(g.m.tree("feature", "data"))
    .map((name) => run("cat", [g.m.tree("feature", "data", name)], { limitMs: SOON_MS }));
  const codes = (await Promise.all(inherited)).map((r) => (assert.equal(r.timedOut, false), r.code));
  assert.ok(codes.includes(1), "what lies behind that base path cannot be read");
  const r = await ctl(control(g, "main"), "feature"); // feature's own rows can be had
  assert.equal(r.code, 0, r.answer.text);
  await checkTip(g, "main", [...rows(0, 10).filter((row) => row.id !== 4), ...rows(100, 2, "f")]);
  await g.m.unmount();
});

test("C61 a mount point inside the data set, by its path and through a link: refused", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", "lance12"),
    inside = path.join(g.ds, "mnt"),
    link = path.join(w.dir, "link");
  fs.mkdirSync(inside);
  fs.symlinkSync(inside, link);
  for (const point of [inside, link, path.join(g.ds, "tree")]) {
    const r = await launch(w, [g.ds, point]);
    assert.equal(r.code, 1, `${point}: ${r.stderr}`);
    assert.match(r.stderr, /lies in the (data set|mount point)/, "it says why");
    assert.equal(isMounted(fs.realpathSync(point)), false);
  }
});

onEach("C61 a branch of one mount, mounted in turn: reads, merges or refuses, and both end", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  const outer = await mount(g.w, g.m.tree("feature"));
  await everybodyEnds(g.m, outer);
  await checkView({ ds: g.m.tree("feature"), m: outer }, "main", OVERLAP.feature);
  await merges(g, "main", "feature");
  await checkTip(g, "main", OVERLAP.union);
  const into = await ctl(path.join(outer.mnt, "tree/main/.merge"), "nobody");
  assert.equal(into.errno, "ENOENT", into.answer.text);
  await outer.unmount();
  await g.m.unmount();
});
