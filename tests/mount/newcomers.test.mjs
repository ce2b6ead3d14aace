// SPDX-License-Identifier: Apache-2.0
// What goes wrong first for who is new here, and what lancefs says to do. Each is one line and exit status 1. Storages without
// hard links are names/lacking.test.mjs, data sets of a later Lance merge/refusals.test.mjs.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { edit, remade } from "../interop/wire.mjs";
import { isMounted, launch, mount } from "../harness/mount.mjs";
import { run, sh } from "../harness/proc.mjs";
import { generate, LANCEFS, probe, workspace } from "../harness/workspace.mjs";

const folder = (w, name) => {
  fs.mkdirSync(path.join(w.dir, name), { recursive: true });
  return path.join(w.dir, name);
};
async function says(w, args, ...parts) {
  const r = await launch(w, args);
  assert.equal(r.code, 1, r.stderr);
  assert.equal(r.stderr.trim().split("\n").length, 1, r.stderr);
  for (const p of parts) assert.ok(r.stderr.includes(p), `${r.stderr.trim()} says ${p}`);
}

test("not a Lance data set: what to name instead", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", "lance12");
  await says(w, [g.root, folder(w, "mnt")], g.root, "is not a Lance data set", "name the directory of the table", "t.lance");
  await says(w, [folder(w, "empty.lance"), folder(w, "mnt")], "empty.lance", "_versions");
});

test("a mount point that is busy: what is there, and how it goes", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", "lance12"),
    m = await mount(w, g.ds);
  await says(w, [g.ds, m.mnt], m.mnt, "mounted", `fusermount3 -u ${m.mnt}`);
  assert.ok(m.isMounted());
});

test("a mount point that is not empty: mounted, and said that its files are hidden", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", "lance12"),
    mnt = folder(w, "mnt");
  fs.writeFileSync(path.join(mnt, "notes"), "x");
  w.defer(() => (isMounted(mnt) ? run("fusermount3", ["-u", mnt]) : Promise.resolve()));
  const r = await launch(w, [g.ds, mnt]);
  assert.equal(r.code, 0, r.stderr);
  assert.match(r.stderr, /mnt is not empty: what lies in it is hidden/);
});

test("a dead mount (transport endpoint is not connected) is taken away, and the log says so", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", "lance12"),
    m = await mount(w, g.ds);
  process.kill(m.pid, "SIGKILL");
  await probe("wait-exit", String(m.pid));
  assert.match((await run("ls", [m.mnt], { env: { LC_ALL: "C" } })).stderr, /Transport endpoint is not connected/);
  const again = await mount(w, g.ds, { at: m.mnt });
  assert.match(again.log(), /took a dead mount away/);
  assert.equal((await run("ls", [again.tree("main")])).code, 0);
});

// As another user, in a mount namespace where something of the machine is missing.
async function without(w, change, parts, options = []) {
  const g = await generate(w, "siblings", "lance12"),
    mnt = folder(w, "mnt"),
    own = path.join(w.dir, "lancefs");
  fs.copyFileSync(LANCEFS, own);
  fs.chmodSync(w.dir, 0o755);
  await run("chown", ["-R", "nobody:", mnt]);
  await run("chmod", ["-R", "a+rX", path.dirname(g.root), g.root]);
  const r = await run(
    "unshare",
    ["--mount", "--propagation", "private", "bash", "-c", `set -e; ${change}\nshift; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "sh", w.dir, own, ...options, g.ds, mnt],
    { env: { LC_ALL: "C" } },
  );
  assert.equal(r.code, 1, `${r.code}: ${r.stderr}`);
  assert.equal(r.stderr.trim().split("\n").length, 1, r.stderr);
  for (const p of parts) assert.ok(r.stderr.includes(p), `${r.stderr.trim()} says ${p}`);
}
async function possible(t) {
  if (process.getuid() !== 0) return t.skip("only root can take a machine's parts away"), false;
  const r = await sh("unshare --mount true");
  return r.code === 0 || (t.skip(`no mount namespaces here: ${r.stderr.trim()}`), false);
}

test("no permission on /dev/fuse: who may, and what a container needs", async (t) => {
  if (!(await possible(t))) return;
  const w = workspace(t);
  await without(w, `mknod -m 600 "$1/fuse" c 10 229; mount --bind "$1/fuse" /dev/fuse`, ["cannot mount on", "/dev/fuse", "Permission denied", "--device /dev/fuse"]);
});

test("no fusermount3: which package has it", async (t) => {
  if (!(await possible(t))) return;
  const w = workspace(t),
    overlay = await sh('mkdir "$1/hole" && mknod "$1/hole/fusermount3" c 0 0 && unshare --mount --propagation private mount -t overlay overlay -o "lowerdir=$1/hole:/usr/bin" /usr/bin', [w.dir]);
  assert.ok(!overlay.timedOut, "mount hangs");
  if (overlay.code !== 0) return t.skip(`no overlay of /usr here: ${overlay.stderr.trim()}`);
  await without(w, `mknod -m 666 "$1/fuse" c 10 229; mount --bind "$1/fuse" /dev/fuse; mount -t overlay overlay -o "lowerdir=$1/hole:/usr/bin" /usr/bin`, ["cannot mount on", "fusermount3", "install the package fuse3"]);
});

test("a data set of a later Lance: the control file says to use a newer lancefs", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    { file } = load(g.storage("feature"));
  fs.writeFileSync(file, remade(fs.readFileSync(file), (m) => edit(m, 9, (v) => (v ?? 0n) | (1n << 40n))));
  const m = await mount(w, g.ds),
    r = await sh('echo feature > "$1/.merge"; grep -v "^#" "$1/.merge"', [m.tree("main")], { env: { LC_ALL: "C" } });
  assert.match(r.stderr, /Operation not supported/);
  assert.match(r.stdout, /use a newer lancefs/);
  assert.match(m.log(), /errno=95 cause=".*use a newer lancefs/);
});
