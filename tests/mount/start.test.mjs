// SPDX-License-Identifier: Apache-2.0
// How lancefs starts, fails to start and ends, and which places outside the data set it may reach.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { daemonOf, isMounted, launch, mount } from "../harness/mount.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { rows, without } from "../harness/rows.mjs";
import { checkView, mounted, onEach } from "../harness/tip.mjs";
import { difference, generate, LANCEFS, probe, snapshot, workspace } from "../harness/workspace.mjs";

const ENGINE = "lance12";
const folder = (w, name) => {
  const p = path.join(w.dir, name);
  fs.mkdirSync(p, { recursive: true });
  return p;
};

// One line on standard error that names the path, exit status 1, nothing mounted.
async function failsToStart(w, args, mnt, named) {
  const r = await launch(w, args);
  assert.equal(r.code, 1, `exit status of lancefs ${args.join(" ")}: ${r.stderr}`);
  assert.equal(r.stderr.trim().split("\n").length, 1, r.stderr);
  assert.ok(r.stderr.includes(named), `${r.stderr} names ${named}`);
  assert.equal(isMounted(mnt), false);
  assert.equal(daemonOf(mnt), undefined, "no daemon stays");
}

test("a data set that is not there, is a file, or is no data set", async (t) => {
  const w = workspace(t),
    mnt = folder(w, "mnt");
  const none = path.join(w.dir, "none.lance"),
    file = path.join(w.dir, "file.lance"),
    empty = folder(w, "empty.lance");
  fs.writeFileSync(file, "");
  for (const ds of [none, file, empty]) await failsToStart(w, [ds, mnt], mnt, ds);
});

test("a database directory instead of a data set is named in the message", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", ENGINE),
    mnt = folder(w, "mnt");
  await failsToStart(w, [g.root, mnt], mnt, g.root);
});

test("a mount point that is not there, or is a file", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", ENGINE),
    file = path.join(w.dir, "file");
  fs.writeFileSync(file, "");
  for (const mnt of [path.join(w.dir, "none"), file]) await failsToStart(w, [g.ds, mnt], mnt, mnt);
});

test("a mount point inside the data set is refused", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", ENGINE),
    mnt = path.join(g.ds, "mnt");
  fs.mkdirSync(mnt);
  w.defer(async () => {
    if (isMounted(mnt)) await run("fusermount3", ["-uz", mnt]);
  });
  await failsToStart(w, [g.ds, mnt], mnt, mnt);
});

for (const args of [[], ["one"], ["--nonsense", "a", "b"], ["a", "b", "c"]]) {
  test(`a wrong command line is exit status 2: lancefs ${args.join(" ")}`, async (t) => {
    const r = await launch(workspace(t), args);
    assert.equal(r.code, 2, r.stderr);
    assert.equal(r.stderr.trim().split("\n").length, 1, r.stderr);
  });
}

for (const option of ["mode=teleport", "nonsense=1", "control_mode=rwx"]) {
  test(`a wrong mount option is exit status 2 and named: -o ${option}`, async (t) => {
    const w = workspace(t),
      g = await generate(w, "siblings", ENGINE),
      mnt = folder(w, "mnt");
    const r = await launch(w, ["-o", option, g.ds, mnt]);
    assert.equal(r.code, 2, r.stderr);
    assert.equal(r.stderr.trim().split("\n").length, 1, r.stderr);
    assert.ok(r.stderr.includes(option.split("=")[0]), r.stderr);
    assert.equal(isMounted(mnt), false);
  });
}

test("-h and -V", async (t) => {
  const w = workspace(t),
    help = await launch(w, ["-h"]),
    version = await launch(w, ["-V"]);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /DATASET\s+MOUNTPOINT/i);
  assert.equal(version.code, 0);
  assert.match(version.stdout, /lancefs/);
});

test("lancefs returns when the mount answers, and lets go of the caller's pipe and folder", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", ENGINE),
    mnt = folder(w, "mnt"),
    cwd = folder(w, "cwd");
  w.defer(async () => {
    if (isMounted(mnt)) await run("fusermount3", ["-uz", mnt]);
  });
  const r = await sh('cd "$4" && "$1" "$2" "$3" 2>&1 | cat; ls "$3/tree"', [LANCEFS, g.ds, mnt, cwd], {
    limitMs: 20_000,
  });
  assert.equal(r.timedOut, false, "the daemon holds the pipe");
  assert.match(r.stdout, /^main$/m);
  assert.equal(fs.readlinkSync(`/proc/${daemonOf(mnt)}/cwd`), "/");
});

test("relative paths and a trailing slash are understood", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", ENGINE);
  folder(w, "mnt");
  w.defer(async () => {
    if (isMounted(path.join(w.dir, "mnt"))) await run("fusermount3", ["-uz", path.join(w.dir, "mnt")]);
  });
  await must(sh('cd "$1" && "$2" "$3/" mnt/', [w.dir, LANCEFS, path.relative(w.dir, g.ds)]));
  assert.match((await must(run("ls", [path.join(w.dir, "mnt/tree/x")]))).stdout, /_versions/);
});

test("the mount is of type fuse.lancefs and names the data set", async (t) => {
  const g = await mounted(t, "siblings", ENGINE);
  const line = fs
    .readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((l) => l.split(" ")[4] === g.m.mnt);
  const [type, source] = line.split(" - ")[1].split(" ");
  assert.equal(type, "fuse.lancefs");
  assert.ok(source.includes("lancefs") || source.includes("t.lance"), source);
});

test("one data set in two mounts", async (t) => {
  const g = await mounted(t, "siblings", ENGINE),
    second = await mount(g.w, g.ds);
  await checkView(
    g,
    "x",
    rows(0, 10).map((r) => (r.id === 1 ? { ...r, v: "x" } : r)),
  );
  await checkView(
    { ...g, m: second },
    "x",
    rows(0, 10).map((r) => (r.id === 1 ? { ...r, v: "x" } : r)),
  );
});

test("unmounting ends the daemon; a busy mount says so and stays", async (t) => {
  const g = await mounted(t, "siblings", ENGINE);
  // The shell stays in the mount meanwhile; it would become the last command of its script.
  const r = await sh('cd "$1" && fusermount3 -u "$1"; exit', [g.m.mnt], { env: { LC_ALL: "C" } });
  assert.notEqual(r.code, 0);
  assert.match(r.stderr, /busy/);
  await g.m.unmount();
  assert.equal((await probe("wait-exit", String(g.m.pid))).code, 0);
});

test("SIGTERM ends the daemon though files are open; half a command is not run", async (t) => {
  const g = await mounted(t, "siblings", ENGINE),
    before = snapshot(g.root);
  // A file, a listing that has begun, and a control file with half a line in it.
  const script = 'cd "$1" && exec 7<data 8<_versions/latest_version_hint.json 9>.merge && printf x >&9 && echo open; read go';
  const p = converse("bash", ["-c", script, "sh", g.m.tree("main")]);
  assert.equal(await p.line(), "open");
  process.kill(g.m.pid, "SIGTERM");
  assert.equal((await probe("wait-exit", String(g.m.pid))).code, 0);
  assert.equal(g.m.isMounted(), false);
  await p.kill();
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

// --- places outside the data set: clone b reaches a's files by a base path

const CLONE = [...without(rows(0, 300), 7), ...rows(1000, 2, "b")];
onEach("bases= that allows the place: the clone reads", async (t, engine) => {
  const w = workspace(t),
    g = await generate(w, "clones", engine, { name: "b" });
  g.m = await mount(w, g.ds, { options: [`bases=${g.root}`] });
  await checkView(g, "main", CLONE);
});

test("bases= that does not allow it: listed with its size, EACCES at open, the log names the base once", async (t) => {
  const w = workspace(t),
    g = await generate(w, "clones", ENGINE, { name: "b" });
  g.m = await mount(w, g.ds, { options: [`bases=${folder(w, "allowed")}`] });
  const [foreign] = fs
    .readdirSync(path.join(g.root, "a.lance/data"))
    .filter((f) => fs.statSync(path.join(g.root, "a.lance/data", f)).size > 3000);
  const file = g.m.tree("main", "data", foreign),
    size = fs.statSync(path.join(g.root, "a.lance/data", foreign)).size;
  assert.equal((await must(run("stat", ["-c", "%s", file]))).stdout.trim(), String(size));
  for (let i = 0; i < 3; i++)
    assert.match((await run("cat", [file], { env: { LC_ALL: "C" } })).stderr, /Permission denied/);
  const named = g.m
    .log()
    .split("\n")
    .filter((l) => l.includes(path.join(g.root, "a.lance")));
  assert.equal(named.length, 1, g.m.log());
});

test("a base that is gone: listed, EIO at open, the rest of the mount works", async (t) => {
  const w = workspace(t),
    g = await generate(w, "clones", ENGINE, { name: "b" });
  const [foreign] = fs
    .readdirSync(path.join(g.root, "a.lance/data"))
    .filter((f) => fs.statSync(path.join(g.root, "a.lance/data", f)).size > 3000);
  fs.renameSync(path.join(g.root, "a.lance"), path.join(g.root, "away"));
  g.m = await mount(w, g.ds);
  assert.match(
    (await run("cat", [g.m.tree("main", "data", foreign)], { env: { LC_ALL: "C" } })).stderr,
    /Input\/output error/,
  );
  await must(run("ls", ["-l", g.m.tree("main", "data")]));
  await must(run("df", [g.m.mnt], { limitMs: 5000 }));
  fs.renameSync(path.join(g.root, "away"), path.join(g.root, "a.lance"));
  await checkView(g, "main", CLONE);
});

test("map=OLD:NEW: a base that went elsewhere is looked for there", async (t) => {
  const w = workspace(t),
    g = await generate(w, "clones", ENGINE, { name: "b" });
  const away = folder(w, "away");
  fs.renameSync(path.join(g.root, "a.lance"), path.join(away, "a.lance"));
  g.m = await mount(w, g.ds, { options: [`map=${g.root}:${away}`] });
  await checkView(g, "main", CLONE);
});
