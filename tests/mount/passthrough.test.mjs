// SPDX-License-Identifier: Apache-2.0
// Data files that the kernel reads itself, and what happens where it does not: the same bytes either way.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { isMounted, mount } from "../harness/mount.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { textOf } from "../harness/reports.mjs";
import { generate, LANCEFS, needs, noBackingPath, probePath, workspace } from "../harness/workspace.mjs";

const ENGINE = "lance12",
  BRANCH = "main",
  { EMFILE, ELOOP, ENOTTY, EPERM } = os.constants.errno,
  [MAJOR, MINOR] = os.release().split(".").map(Number),
  IMPOSSIBLE =
    process.getuid() !== 0
      ? "only root's daemon may hand files to the kernel"
      : MAJOR > 6 || (MAJOR === 6 && MINOR >= 9)
        ? false
        : "the kernel is older than 6.9";
const onPassthrough = (name, fn) => test(name, { skip: IMPOSSIBLE }, fn);

// A mount of three files of real data, which are long enough to be read in pieces.
async function data(t, { options = [], noBacking } = {}) {
  const w = workspace(t),
    g = await generate(w, "bitmap_deletes", ENGINE),
    env = noBacking ? { LD_PRELOAD: await noBackingPath(), NO_BACKING: noBacking } : {};
  g.m = await mount(w, g.ds, { options, env });
  g.w = w;
  return g;
}
const files = (g) =>
  fs.readdirSync(path.join(g.storage(BRANCH), "data")).map((f) => ({
    stored: path.join(g.storage(BRANCH), "data", f),
    shown: g.m.tree(BRANCH, "data", f),
  }));

async function stats(g) {
  const text = await textOf(path.join(g.m.mnt, ".stats")),
    value = (name) => Number(text.split("\n").find((l) => l.startsWith(`${name} `)).split(" ")[1]);
  return {
    read: value('lancefs_read_bytes_total{kind="stored"}'),
    byKernel: value('lancefs_data_opens_total{by="kernel"}'),
    byDaemon: value('lancefs_data_opens_total{by="daemon"}'),
    backing: value("lancefs_backing_files"),
  };
}
// The kernel tells of a close behind it: until it has.
async function allClosed(g, limit = Date.now() + 20_000) {
  while ((await stats(g)).backing) assert.ok(Date.now() < limit, "the kernel's files are let go of");
}
async function sameBytes(g) {
  const found = files(g);
  assert.ok(found.length, "there is something to read");
  for (const { stored, shown } of found) await must(run("cmp", [stored, shown]));
  return found;
}
const tellings = (g) => g.m.log().split("\n").filter((l) => l.includes("no passthrough"));

// A shell that has a file open as descriptor 3, and prints the hash of its bytes when it is told to.
async function holder(t, file) {
  const c = converse("bash", ["-c", 'exec 3<"$1" && echo open && read -r && sha256sum <&3', "bash", file]);
  t.after(() => c.kill());
  assert.equal(await c.line(), "open");
  return c;
}
async function hashThrough(c) {
  c.say("");
  return (await c.line()).split(" ")[0];
}
const hashOf = async (file) => (await must(run("sha256sum", ["--", file]))).stdout.split(" ")[0];

onPassthrough("reads are the kernel's: equal bytes, none through the daemon", async (t) => {
  const g = await data(t),
    found = await sameBytes(g),
    s = await stats(g);
  assert.deepEqual([s.read, s.byKernel, s.byDaemon], [0, found.length, 0]);
  assert.deepEqual(tellings(g), []);
  await allClosed(g);
});

onPassthrough("an open file is read while the daemon is stopped", async (t) => {
  const g = await data(t),
    [{ stored, shown }] = files(g),
    c = await holder(t, shown);
  process.kill(g.m.pid, "SIGSTOP");
  try {
    assert.equal(await hashThrough(c), await hashOf(stored));
  } finally {
    process.kill(g.m.pid, "SIGCONT");
  }
  await c.ended;
});

onPassthrough("an open file is read after the daemon was killed", async (t) => {
  const g = await data(t),
    [{ stored, shown }] = files(g),
    c = await holder(t, shown);
  process.kill(g.m.pid, "SIGKILL");
  assert.equal(await hashThrough(c), await hashOf(stored));
});

onPassthrough("mappings, sendfile, copy_file_range, reads past the page cache", async (t) => {
  const g = await data(t),
    exe = await probePath();
  for (const { stored, shown } of files(g))
    for (const script of [
      '"$3" mmap "$1" shared',
      '"$3" mmap "$1" private',
      '"$3" sendfile "$1"',
      'cp --reflink=auto "$1" "$2" && cat "$2"',
      'dd if="$1" bs=64k iflag=direct status=none',
      'dd if="$1" bs=1000 skip=7 status=none | cat <(head -c 7000 "$1") -',
    ])
      await must(sh(`${script} > "$2.got" && cmp "$2.got" "$4"`, [shown, path.join(g.w.dir, "x"), exe, stored]));
  assert.equal((await stats(g)).read, 0);
});

onPassthrough("many readers open and close the same files at once", async (t) => {
  const g = await data(t),
    found = files(g);
  const script = 'for i in $(seq 25); do for f; do cmp "$f" "$S/${f##*/}" || exit 1; done; done',
    readers = Array.from({ length: 6 }, () =>
      must(sh(script, found.map((f) => f.shown), { env: { S: path.dirname(found[0].stored) } })),
    );
  await Promise.all(readers);
  const s = await stats(g);
  assert.deepEqual([s.read, s.byKernel, s.byDaemon], [0, 6 * 25 * found.length, 0]);
  await allClosed(g);
});

onPassthrough("a file that is removed while it is open is read to its end, and opened no more", async (t) => {
  const g = await data(t),
    [{ stored, shown }] = files(g),
    hash = await hashOf(stored),
    c = await holder(t, shown);
  fs.rmSync(stored);
  assert.equal(await hashThrough(c), hash);
  assert.throws(() => fs.readFileSync(shown), { code: /ENOENT|ESTALE|EIO/ });
});

onPassthrough("two thousand opens cost the daemon no descriptor", async (t) => {
  const g = await data(t),
    found = files(g),
    count = () => fs.readdirSync(`/proc/${g.m.pid}/fd`).length,
    before = count();
  const fds = Array.from({ length: 2000 }, (_, i) => fs.openSync(found[i % found.length].shown));
  try {
    assert.ok(count() - before < 20, `${count() - before} more descriptors`);
    assert.equal((await stats(g)).backing, found.length);
  } finally {
    fds.forEach((fd) => fs.closeSync(fd));
  }
  await allClosed(g);
});

onPassthrough("a file that is being written is read by the daemon, and by the kernel once it is closed", async (t) => {
  const g = await data(t),
    file = g.m.tree(BRANCH, "data", "new.lance"),
    c = converse("bash", ["-c", 'exec 3>"$1"; printf one >&3; echo half; read -r; printf two >&3', "bash", file]);
  t.after(() => c.kill());
  assert.equal(await c.line(), "half");
  assert.equal(fs.readFileSync(file, "utf8"), "one");
  assert.equal((await stats(g)).byKernel, 0);
  c.say("");
  await c.ended;
  assert.equal(fs.readFileSync(file, "utf8"), "onetwo");
  assert.equal((await stats(g)).byKernel, 1);
});

test("passthrough=off: the daemon reads, and says nothing of it", async (t) => {
  const g = await data(t, { options: ["passthrough=off"] }),
    found = await sameBytes(g),
    s = await stats(g);
  assert.deepEqual([s.byKernel, s.byDaemon], [0, found.length]);
  assert.ok(s.read > 0);
  await must(sh('cat "$@" > /dev/null', found.map((f) => f.shown)));
  assert.equal((await stats(g)).read, s.read, "the kernel keeps what it has read");
  assert.deepEqual(tellings(g), []);
});

for (const [name, errno] of Object.entries({ EPERM, ENOTTY }))
  onPassthrough(`the kernel takes no file at all (${name}): the daemon reads, said once`, async (t) => {
    const g = await data(t, { noBacking: `${errno}` }),
      found = await sameBytes(g),
      s = await stats(g);
    assert.deepEqual([s.byKernel, s.byDaemon], [0, found.length]);
    assert.equal(tellings(g).length, 1, g.m.log());
  });

onPassthrough("the kernel takes some files not: they are read by the daemon, the others not", async (t) => {
  const g = await data(t, { noBacking: `${ELOOP}:1` }),
    found = await sameBytes(g),
    s = await stats(g);
  assert.deepEqual([s.byKernel, s.byDaemon], [found.length - 1, 1]);
  assert.equal(tellings(g).length, 1, g.m.log());
});

onPassthrough("all opens of one file go the way of the first that is not closed", async (t) => {
  const g = await data(t, { noBacking: `${EMFILE}:1` }),
    [{ stored, shown }] = files(g),
    c = await holder(t, shown); // the daemon's
  await must(run("cmp", [stored, shown]));
  assert.deepEqual(((s) => [s.byKernel, s.byDaemon])(await stats(g)), [0, 2]);
  assert.equal(await hashThrough(c), await hashOf(stored));
  await c.ended;
  for (const limit = Date.now() + 20_000; (await stats(g)).byKernel === 0; ) {
    assert.ok(Date.now() < limit, "the next open, when all are closed, is the kernel's");
    await must(run("cmp", [stored, shown]));
  }
});

onPassthrough("passthrough=on: a file that the kernel does not take cannot be opened", async (t) => {
  const g = await data(t, { options: ["passthrough=on"], noBacking: `${ELOOP}:1` }),
    [{ stored, shown }] = files(g);
  assert.throws(() => fs.openSync(shown), { code: "ELOOP" });
  await must(run("cmp", [stored, shown]));
});

onPassthrough("passthrough=on is refused to a daemon that may not", async (t) => {
  if (!(await needs(t, "setpriv"))) return;
  const w = workspace(t),
    g = await generate(w, "siblings", ENGINE),
    mnt = path.join(w.dir, "mnt");
  fs.mkdirSync(mnt);
  const r = await run("setpriv", ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", LANCEFS, "-o", "passthrough=on", g.ds, mnt]);
  assert.equal(r.code, 1, r.stderr);
  assert.match(r.stderr, /^lancefs: .*passthrough=on.*passthrough=auto\n$/);
  assert.equal(isMounted(mnt), false);
});

onPassthrough("a data set on an overlay, as in containers, and on an overlay of one", async (t) => {
  const w = workspace(t),
    g = await generate(w, "bitmap_deletes", ENGINE),
    at = (...n) => path.join(w.dir, ...n);
  const layer = async (name, lower) => {
    fs.mkdirSync(at(name));
    fs.mkdirSync(at(`${name}.empty`));
    const r = await run("mount", ["-t", "overlay", "overlay", "-o", `ro,lowerdir=${lower}:${at(`${name}.empty`)}`, at(name)]);
    if (r.code === 0) w.defer(() => must(run("umount", [at(name)])));
    return r.code === 0;
  };
  if (!(await layer("one", g.root)) || !(await layer("two", at("one")))) {
    t.skip("no overlay can be mounted here");
    return;
  }
  for (const [name, byKernel] of [["one", true], ["two", false]]) {
    const o = { ...g, w, ds: at(name, "t.lance"), m: await mount(w, at(name, "t.lance"), { options: ["ro"] }) },
      found = await sameBytes(o),
      s = await stats(o);
    assert.deepEqual([s.byKernel, s.byDaemon], byKernel ? [found.length, 0] : [0, found.length], name);
    await o.m.unmount();
  }
});
