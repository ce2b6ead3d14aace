// SPDX-License-Identifier: Apache-2.0
// The storage fails a commit through the mount: no space, no right to write, an error of the device, no hard links. The
// writer is told, nothing half made is shown, and the mount goes on.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { tip, versions } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { faultyMount } from "../harness/faults.mjs";
import { mount } from "../harness/mount.mjs";
import { run } from "../harness/proc.mjs";
import { OVERLAP, rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, merges, mounted, onEach } from "../harness/tip.mjs";
import { difference, ENGINES, generate, place, snapshot, workspace } from "../harness/workspace.mjs";

const MORE = rows(900, 2, "w");

// A data set on such a mount: fails("linkat EPERM -"), works().
async function faulty(t, engine) {
  const w = workspace(t),
    g = { w, ...(await generate(w, "overlap_deletes", engine)) };
  g.m = await faultyMount(w, g.ds);
  return Object.assign(g, { fails: g.m.fails, works: g.m.works });
}

const FAULTS = {
  "no space for data": ["write ENOSPC /data/", /No space left/],
  "no quota for the version": ["write EDQUOT /_versions/", /quota exceeded/i],
  "a device error while data is flushed": ["fsync EIO /data/", /Input\/output error/],
  "a device error while the version is flushed": ["fsync EIO /_versions/", /Input\/output error/],
  "no right to make files": ["create EACCES /_transactions/", /Permission denied/],
  "a storage that became read-only": ["create EROFS -", /Read-only file system/],
};
for (const [i, [name, [fault, told]]] of Object.entries(FAULTS).entries())
  test(`${name}: the writer is told, nothing half made is shown, the mount goes on`, async (t) => {
    const engine = ENGINES[i % 2],
      g = await faulty(t, engine),
      was = versions(g.storage("feature"));
    g.fails(fault);
    await assert.rejects(stock[engine].op(g.m.table("feature"), "main", "add", { rows: MORE }), told);
    assert.deepEqual(versions(g.storage("feature")), was);
    await checkTip(g, "feature", OVERLAP.feature);
    g.works();
    await stock[engine].op(g.m.table("feature"), "main", "add", { rows: MORE });
    await checkTip(g, "feature", [...OVERLAP.feature, ...MORE]);
    await checkTip(g, "main", OVERLAP.main);
    await g.m.unmount();
  });

for (const [i, code] of ["EPERM", "EOPNOTSUPP", "ENOSYS"].entries())
  test(`no hard links (${code}): commits, races, tags and merges all the same`, async (t) => {
    const engine = ENGINES[i % 2],
      g = await faulty(t, engine),
      lots = [0, 1, 2, 3].map((i) => rows(900 + i * 10, 2, `w${i}`)),
      from = tip(g.storage("feature"));
    g.fails(`linkat ${code} -`);
    await Promise.all(lots.map((lot) => stock[engine].op(g.m.table("feature"), "main", "add", { rows: lot })));
    assert.deepEqual(versions(g.storage("feature")).slice(-4), [1, 2, 3, 4].map((i) => from + i));
    await stock[engine].op(g.m.table("feature"), "main", "tag", { name: "v1", version: from });
    await merges(g, "main", "feature");
    await checkTip(g, "feature", [...OVERLAP.feature, ...lots.flat()]);
    await checkTip(g, "main", [...OVERLAP.union, ...lots.flat()]);
    await g.m.unmount();
  });

onEach("neither links nor renames that replace nothing: a commit is refused, since two could win", async (t, engine) => {
  const g = await faulty(t, engine),
    was = versions(g.storage("feature"));
  g.fails("linkat EOPNOTSUPP -", "renameat2 EINVAL /_versions");
  await assert.rejects(stock[engine].op(g.m.table("feature"), "main", "add", { rows: MORE }), /not support/i);
  assert.deepEqual(versions(g.storage("feature")), was);
  assert.match(g.m.log(), /cannot put \d+\.manifest in place/);
  g.works();
  await checkTip(g, "feature", OVERLAP.feature);
  await g.m.unmount();
});

onEach("C27 the link was made and its answer lost: the commit counts, once", async (t, engine) => {
  const g = await faulty(t, engine),
    from = tip(g.storage("feature"));
  g.fails("linkat! EIO /_versions");
  await stock[engine].op(g.m.table("feature"), "main", "add", { rows: MORE });
  const r = await ctl(path.join(g.m.mnt, "tree/main/.merge"), "feature");
  assert.equal(r.code, 0, r.answer.text);
  g.works();
  assert.equal(tip(g.storage("feature")), from + 1);
  await checkTip(g, "feature", [...OVERLAP.feature, ...MORE]);
  await checkTip(g, "main", [...OVERLAP.union, ...MORE]);
  await g.m.unmount();
});

// A file system of a few MiB; undefined (and the test skipped, saying why) where none can be mounted.
async function smallDisk(t, w) {
  const dir = path.join(w.dir, "disk");
  fs.mkdirSync(dir);
  const r = await run("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", dir]);
  if (r.code !== 0) {
    t.skip(`no small file system can be mounted: ${r.stderr.trim()}`);
    return undefined;
  }
  w.defer(async () => void (await run("umount", ["-l", dir])));
  return dir;
}

test("C60 a full disk, then a read-only one: commits and merges fail with its errno, all is as before, and it goes on", async (t) => {
  const w = workspace(t),
    disk = await smallDisk(t, w);
  if (!disk) return;
  const ds = path.join(disk, "t.lance");
  await stock.lance12.create(ds, rows(0, 100));
  await stock.lance12.op(ds, "main", "fork", { name: "feature" });
  await stock.lance12.op(ds, "feature", "add", { rows: rows(200, 5) });
  await stock.lance12.op(ds, "main", "add", { rows: rows(300, 5) });
  const g = { w, ...place(ds), m: await mount(w, ds) },
    wide = rows(1000, 400).map((r) => ({ ...r, v: r.v.repeat(20) })),
    main = [...rows(0, 100), ...rows(300, 5)],
    fill = path.join(disk, "fill");
  const filled = () => {
    const fd = fs.openSync(fill, "w");
    for (const size of [1 << 16, 1 << 12])
      try {
        for (;;) fs.writeSync(fd, Buffer.alloc(size));
      } catch (e) {
        assert.equal(e.code, "ENOSPC");
      }
    fs.closeSync(fd);
  };
  filled();
  const before = snapshot(ds);
  await assert.rejects(stock.lance12.op(g.m.table("main"), "main", "add", { rows: wide }), /No space left/);
  const full = await ctl(path.join(g.m.mnt, "tree/main/.merge"), "feature");
  assert.equal(full.errno, "ENOSPC", full.answer.text);
  assert.deepEqual(difference(before, snapshot(ds)).filter((l) => !/^new: (_lancefs|data$|_transactions$)/.test(l)), []);
  await checkTip(g, "main", main);
  fs.unlinkSync(fill);
  assert.equal((await run("mount", ["-o", "remount,ro", disk])).code, 0);
  await assert.rejects(stock.lance12.op(g.m.table("main"), "main", "add", { rows: wide }), /Read-only file system/);
  assert.equal((await ctl(path.join(g.m.mnt, "tree/main/.merge"), "feature")).errno, "EROFS");
  await checkTip(g, "main", main);
  assert.equal((await run("mount", ["-o", "remount,rw", disk])).code, 0);
  await stock.lance12.op(g.m.table("main"), "main", "add", { rows: wide });
  await merges(g, "main", "feature");
  await checkTip(g, "main", [...main, ...wide, ...rows(200, 5)]);
  await g.m.unmount();
});

test("a hint that cannot be written is no failure of the commit (C68)", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    hint = path.join(g.storage("feature"), "_versions/latest_version_hint.json");
  fs.rmSync(hint, { force: true });
  fs.mkdirSync(hint);
  for (const engine of ["lance10", "lance12"]) await stock[engine].op(g.m.table("feature"), "main", "add", { rows: rows(engine === "lance10" ? 900 : 910, 2, "w") });
  await checkTip(g, "feature", [...OVERLAP.feature, ...rows(900, 2, "w"), ...rows(910, 2, "w")]);
  await g.m.unmount();
});
