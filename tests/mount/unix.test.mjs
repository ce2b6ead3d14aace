// SPDX-License-Identifier: Apache-2.0
// The mount under everyday tools: times, sizes, inode numbers, walks over the whole tree, mappings, disk usage, listings.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { tip } from "../interop/manifest.mjs";
import { mount } from "../harness/mount.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, merges, mounted } from "../harness/tip.mjs";
import { difference, generate, needs, probePath, snapshot, workspace } from "../harness/workspace.mjs";

const ENGINE = "lance12";
const CONTROL = /\/\.(merge|cherry-pick|rebase|revert|undo|rehome|branch|tag|gc|fsck)$/;
const lines = (r) => r.stdout.split("\n").filter(Boolean);
const find = async (g, ...what) => lines(await must(run("find", [g.m.mnt, ...what])));
// Every regular file but the control files, whose size is not known before they are read
const plainFiles = async (g) => (await find(g, "-type", "f")).filter((f) => !CONTROL.test(f));

// --- C24: times

// A path, its size and its times: as `find` tells them.
const times = async (g) => must(run("find", [g.m.mnt, "-printf", "%P %y %s %T@ %C@\n"])).then((r) => lines(r).sort());

test("C24 two archives are equal, tar has nothing to say", async (t) => {
  const g = await mounted(t, "chain", ENGINE),
    at = (n) => path.join(g.w.dir, n);
  for (const n of ["a.tar", "b.tar"])
    assert.equal((await must(run("tar", ["-C", g.m.mnt, "-cf", at(n), "."]))).stderr, "");
  await must(run("cmp", [at("a.tar"), at("b.tar")]));
});

test("C24 the second rsync finds nothing to do", async (t) => {
  if (!(await needs(t, "rsync"))) return;
  const g = await mounted(t, "chain", ENGINE),
    to = path.join(g.w.dir, "copy");
  const sync = () => must(run("rsync", ["-a", "-i", `${g.m.mnt}/`, to]));
  assert.notEqual((await sync()).stdout, "");
  const again = lines(await sync()).filter((l) => !CONTROL.test(`/${l.split(" ").at(-1)}`));
  assert.deepEqual(again, []);
});

test("C24 times come from the data: stable over listings, reads and a remount; new when a version arrives", async (t) => {
  const w = workspace(t),
    g = await generate(w, "chain", ENGINE);
  const at = path.join(w.dir, "mnt");
  g.m = await mount(w, g.ds, { at });
  const first = await times(g);
  for (const line of first) assert.ok(Number(line.split(" ").at(-2)) > 1e9, `mtime of ${line}`);
  await must(sh('ls -lR "$1" > /dev/null; cat "$1"/tree/main/_versions/* > /dev/null', [g.m.mnt]));
  assert.deepEqual(await times(g), first);
  await g.m.unmount();
  g.m = await mount(w, g.ds, { at });
  assert.deepEqual(await times(g), first, "after a remount");
  const mtime = async (p) => Number((await must(run("stat", ["-c", "%.9Y", p]))).stdout);
  const dir = g.m.tree("main", "_versions"),
    before = await mtime(dir);
  await stock[ENGINE].op(g.ds, "main", "add", { rows: rows(500, 1) });
  assert.ok((await mtime(dir)) > before, "_versions changed");
});

test("C24 a manifest's time is its version's: newest last with ls -t", async (t) => {
  const g = await mounted(t, "v1_names", ENGINE);
  const byTime = lines(await must(run("ls", ["-tr1", g.m.tree("main", "_versions")]))).filter((n) =>
    n.endsWith(".manifest"),
  );
  assert.deepEqual(
    byTime,
    Array.from({ length: 12 }, (_, i) => `${i + 1}.manifest`),
  );
});

// --- C29: sizes

// Ways to read a whole file; each must give the same bytes. "$1" is the file, "$2" a scratch file, "$3" the probe.
const READERS = {
  cp: 'cp "$1" "$2" && cat "$2"',
  "cp --reflink=auto": 'cp --reflink=auto "$1" "$2" && cat "$2"',
  "cp --sparse=always": 'cp --sparse=always "$1" "$2" && cat "$2"',
  "dd bs=1": 'dd if="$1" bs=1 status=none',
  "dd bs=4k": 'dd if="$1" bs=4k status=none',
  "tail -c +1": 'tail -c +1 "$1"',
  head: 'head -c 100000000 "$1"',
  base64: 'base64 -w0 "$1" | base64 -d',
  tar: 'tar -C / -cf - "${1#/}" 2>/dev/null | tar -xOf -',
  redirection: 'cat < "$1"',
  sendfile: '"$3" sendfile "$1"',
  copy_file_range: 'rm -f "$2"; "$3" copy-range "$1" "$2" 2>/dev/null || cp "$1" "$2"; cat "$2"',
  "mmap shared": '[ -s "$1" ] && "$3" mmap "$1" shared',
  "mmap private": '[ -s "$1" ] && "$3" mmap "$1" private',
};

test("C29 C62 every reader gives the same bytes, and as many as stat says", async (t) => {
  const g = await mounted(t, "chain", ENGINE),
    exe = await probePath(),
    scratch = path.join(g.w.dir, "scratch");
  const files = await plainFiles(g),
    few = new Map(); // the slow part on one file of each kind, of main and of a branch whose manifests are flattened
  for (const f of files) {
    const [, branch] = path.relative(g.m.mnt, f).split("/");
    few.set(`${branch === "main"} ${path.basename(path.dirname(f))} ${path.extname(f)}`, f);
  }
  assert.ok(few.size >= 8, [...few.keys()].join(", "));
  const sizes = 'for f; do stat -c %s "$f"; wc -c < "$f"; cat "$f" | wc -c; done';
  const told = lines(await must(sh(sizes, files))).map(Number);
  for (const [i, f] of files.entries()) {
    const [stat, ...read] = told.slice(3 * i, 3 * i + 3);
    assert.deepEqual(read, [stat, stat], `${f}: what stat says, and what two readers get`);
  }
  const each = Object.entries(READERS).map(
    ([name, script]) =>
      `( ${script} ) > "$2.got" || echo "${name}: exit status $?"; cmp "$2.got" "$2.want" 2>&1 || echo "${name}"`,
  );
  const all = ['cat "$1" > "$2.want"; [ -s "$2.want" ] || echo empty', ...each, "echo end"].join("\n");
  for (const f of few.values())
    assert.equal((await sh(all, [f, scratch, exe])).stdout, "end\n", path.relative(g.m.mnt, f));
});

test("C29 the ends: tail -c, tail -n, less", async (t) => {
  const g = await mounted(t, "chain", ENGINE),
    hint = g.m.tree("main", "_versions/latest_version_hint.json");
  assert.equal((await must(run("tail", ["-c", "5", hint]))).stdout, 'n":3}');
  assert.equal((await must(run("tail", ["-n", "1", hint]))).stdout, '{"version":3}');
  const manifest = lines(await must(run("find", [g.m.tree("main", "_versions"), "-name", "*.manifest"])))[0];
  assert.equal((await must(run("tail", ["-c", "4", manifest]))).stdout, "LANC");
  if (await needs(t, "less")) assert.match((await must(run("less", ["-F", hint]))).stdout, /"version":3/);
});

test("C29 a control file gives its text to every reader that does not trust the size", async (t) => {
  const g = await mounted(t, "chain", ENGINE),
    file = g.m.tree("main", ".merge");
  const want = (await must(run("cat", [file]))).stdout;
  assert.match(want, /SOURCE/);
  for (const script of [
    'cp "$1" "$2" && cat "$2"',
    'dd if="$1" bs=1 status=none',
    'head -n 1000 "$1"',
    'grep "" "$1"',
    'cat < "$1"',
  ])
    assert.equal((await must(sh(script, [file, path.join(g.w.dir, "x")]))).stdout, want, script);
});

test("C29 a file that is open shows one state, though a commit falls between two reads", async (t) => {
  const g = await mounted(t, "chain", ENGINE);
  const p = converse("bash", [
    "-c",
    'exec 7<"$1"; head -c 4 <&7; echo; read go; cat <&7; echo',
    "sh",
    g.m.tree("main", "_versions/latest_version_hint.json"),
  ]);
  const head = await p.line();
  await stock[ENGINE].op(g.ds, "main", "add", { rows: rows(600, 1) });
  p.say("go on");
  assert.match(head + (await p.line()), /^\{"version":(3|4)\}$/);
  await p.close();
});

// --- C42: inode numbers

test("C42 readdir and stat give one number; equal numbers mean equal bytes; none is 0", async (t) => {
  const g = await mounted(t, "chain", ENGINE),
    exe = await probePath(),
    hashes = new Map();
  for (const dir of await find(g, "-type", "d")) {
    const told = new Map();
    for (const line of lines(await must(run(exe, ["getdents", dir, "4096"])))) {
      const [, ino, name] = /^(\d+) (.*)$/.exec(line);
      assert.notEqual(ino, "0", `${dir}/${name}`);
      if (name !== "..") told.set(path.join(dir, name), ino);
    }
    const stat = lines(await must(run("stat", ["-c", "%i", "--", ...told.keys()])));
    assert.deepEqual(new Map([...told.keys()].map((p, i) => [p, stat[i]])), told, `${dir}: getdents and stat`);
  }
  const files = lines(await must(sh('find "$1" -type f -printf "%i %p\\n"', [g.m.mnt])))
    .map((line) => /^(\d+) (.*)$/.exec(line).slice(1))
    .filter(([, file]) => !CONTROL.test(file));
  const sums = lines(await must(run("sha1sum", ["--", ...files.map(([, file]) => file)])));
  for (const [i, [ino, file]] of files.entries()) {
    const hash = sums[i].split(" ")[0];
    assert.equal(hashes.get(ino) ?? hash, hash, `${file} shares number ${ino} with other bytes`);
    hashes.set(ino, hash);
  }
  assert.ok(hashes.size > 10, "the files were looked at");
});

test("C42 two names of one file have one inode, numbers stay, links are counted so that tools agree", async (t) => {
  const g = await mounted(t, "chain", ENGINE);
  const numbers = async () => lines(await must(sh('find "$1" -printf "%i %n %P\\n" | sort', [g.m.mnt])));
  const before = await numbers();
  await must(sh('ls -lR "$1" >/dev/null; cat "$1"/tree/*/data/* >/dev/null', [g.m.mnt]));
  assert.deepEqual(await numbers(), before);
  const ino = async (p) => (await must(run("stat", ["-c", "%i", p]))).stdout;
  const [shared] = lines(await must(run("ls", [g.m.tree("main", "data")]))).filter((f) =>
    fs.existsSync(path.join(g.ds, "data", f)),
  );
  assert.equal(await ino(g.m.tree("main", "data", shared)), await ino(g.m.tree("exp/sub/deep", "data", shared)));
  // find without -noleaf trusts a directory's link count unless that is 1 (or less than 2)
  const a = await find(g),
    b = lines(await must(run("find", [g.m.mnt, "-noleaf"])));
  assert.deepEqual(a.sort(), b.sort());
});

test("C42 tar and extraction, diff -r, rsync -H give the same tree", async (t) => {
  const g = await mounted(t, "chain", ENGINE),
    to = path.join(g.w.dir, "x");
  fs.mkdirSync(to);
  await must(sh('set -o pipefail; tar -C "$1" --exclude=".*" -cf - tree | tar -C "$2" -xf -', [g.m.mnt, to]));
  await must(run("diff", ["-r", "--exclude=.*", g.m.tree("."), path.join(to, "tree")]));
  if (!(await needs(t, "rsync"))) return;
  await must(run("rsync", ["-aH", "--exclude=.*", `${g.m.tree(".")}/`, path.join(g.w.dir, "y")]));
  await must(run("diff", ["-r", "--exclude=.*", g.m.tree("."), path.join(g.w.dir, "y")]));
});

// --- C58: walks over everything

const WALKS = {
  "grep -r": 'grep -r r5 "$1"; true',
  "find -exec cat": 'find "$1" -type f -exec cat {} + > /dev/null',
  tar: 'tar -cf /dev/null -C "$1" .',
  "tar through a pipe": 'set -o pipefail; tar -C "$1" -cf - . | cat > /dev/null',
  "cp -r and rm": 'cp -r "$1" "$2/y" && rm -rf "$2/y"',
  file: 'find "$1" -type f -print0 | xargs -0 file > /dev/null',
  md5sum: 'find "$1" -type f -exec md5sum {} + > /dev/null',
  rsync: 'rsync -a "$1/" "$2/z"',
  "ls -lR": 'ls -laR "$1" > /dev/null',
  du: 'du -s "$1" > /dev/null',
  "find -newer": 'find "$1" -newer /etc/passwd > /dev/null',
  wc: 'find "$1" -type f -exec wc {} + > /dev/null',
};
for (const [name, script] of Object.entries(WALKS)) {
  test(`C58 ${name}: ends, succeeds, starts nothing`, async (t) => {
    if (["rsync", "file"].includes(name) && !(await needs(t, name))) return;
    const g = await mounted(t, "chain", ENGINE),
      before = snapshot(g.root);
    const r = await sh(script, [g.m.mnt, g.w.dir], { limitMs: 20_000 });
    assert.equal(r.code, 0, r.stderr);
    assert.deepEqual(difference(before, snapshot(g.root)), []);
    assert.equal(g.m.isMounted(), true);
  });
}
for (const [name, script] of Object.entries({
  "chmod -R": 'chmod -R u+w "$1"',
  "chown -R": 'chown -R 0 "$1/tree"',
  "touch of all files": 'find "$1" -type f -exec touch {} +',
  "a restore onto the mount": 'cp -r "$1/tree/feature" "$2/y"; cp -rf "$2/y/." "$1/tree/feature/"',
  "rm -rf": 'rm -rf "$1"/*',
})) {
  test(`C58 ${name}: changes nothing and starts nothing, whatever it says`, async (t) => {
    const g = await mounted(t, "chain", ENGINE),
      before = snapshot(g.root);
    assert.equal((await sh(script, [g.m.mnt, g.w.dir], { limitMs: 20_000 })).timedOut, false);
    assert.deepEqual(difference(before, snapshot(g.root)), []);
    await checkTip(g, "main", [...rows(0, 10), ...rows(10, 1, "m")]);
  });
}

// --- C72: blocks, holes, df

test("C72 du, blocks, sparse copies and holes", async (t) => {
  const g = await mounted(t, "bitmap_deletes", ENGINE),
    exe = await probePath(),
    x = path.join(g.w.dir, "x");
  const [file] = lines(await must(run("find", [g.m.tree("main", "data"), "-type", "f"]))),
    real = path.join(g.ds, "data", path.basename(file));
  const [size, blocks, unit] = (await must(run("stat", ["-c", "%s %b %B", file]))).stdout.trim().split(" ").map(Number);
  assert.equal(size, fs.statSync(real).size);
  assert.ok(blocks * unit >= size, `${blocks} blocks of ${unit} cover ${size}`);
  const used = Number((await must(run("du", ["-sk", "--apparent-size", g.m.tree("main")]))).stdout.split("\t")[0]);
  assert.ok(used * 1024 >= size);
  assert.ok(Number((await must(run("du", ["-sk", g.m.tree("main")]))).stdout.split("\t")[0]) * 1024 >= size);
  fs.mkdirSync(x);
  await must(
    sh('set -o pipefail; tar -S -C "$1" -cf - data | tar -C "$2" -xf - && cp --sparse=always "$3" "$2/sparse"', [
      g.m.tree("main"),
      x,
      file,
    ]),
  );
  for (const copy of [path.join(x, "data", path.basename(file)), path.join(x, "sparse")])
    assert.deepEqual(fs.readFileSync(copy), fs.readFileSync(real), copy);
  assert.match((await run(exe, ["seek-hole", file])).stdout, new RegExp(`^(${size} ${size} 0|EINVAL)$`, "m"));
});

test("C72 df shows the file system behind; stat -f has a block size and long names", async (t) => {
  const g = await mounted(t, "chain", ENGINE),
    f = async (p) => (await must(run("stat", ["-f", "-c", "%S %b %l", p]))).stdout.trim().split(" ").map(Number);
  const [[unit, total, names], [realUnit, realTotal]] = [await f(g.m.mnt), await f(g.ds)];
  assert.ok(unit > 0 && total > 0);
  assert.equal(unit * total, realUnit * realTotal);
  assert.equal(names, 255);
  assert.match((await must(run("df", ["-h", g.m.mnt]))).stdout, /\d/);
  await must(run("df", ["-i", g.m.mnt]));
});

// --- C80: listings

const FRAGMENTS = 600; // more names than the largest buffer below holds
test(
  "C80 a directory of many files: each name once, whatever the buffer, by any way of seeking",
  { timeout: 180_000 },
  async (t) => {
    const w = workspace(t),
      g = await generate(w, "many_fragments", ENGINE, { args: [String(FRAGMENTS)] });
    g.m = await mount(w, g.ds);
    const exe = await probePath(),
      dir = g.m.tree("main", "data"),
      real = fs.readdirSync(path.join(g.ds, "data")).sort();
    assert.equal(real.length, FRAGMENTS);
    const names = (r) =>
      lines(r)
        .map((l) => l.split(" ").slice(1).join(" "))
        .filter((n) => n !== "." && n !== ".." && n !== "")
        .sort();
    for (const size of ["512", "4096", "32768"])
      assert.deepEqual(names(await must(run(exe, ["getdents", dir, size]))), real, `a buffer of ${size} bytes`);
    assert.deepEqual(lines(await must(run("ls", ["-U", dir]))).sort(), real);
    assert.equal((await must(run(exe, ["seekdir", dir]))).stdout, `${FRAGMENTS + 2} ${FRAGMENTS + 2}\n`);
    assert.equal(lines(await must(run("ls", ["-U", g.m.tree("wide", "data")]))).length, FRAGMENTS + 20);
    assert.equal(
      lines(await must(run("ls", ["-U", g.m.tree("main", "_versions")]))).filter((n) => n.endsWith(".manifest")).length,
      FRAGMENTS,
    );

    // A listing that a commit falls into: what was there throughout is listed once.
    const p = converse(exe, ["getdents", dir, "512", "pause"]),
      seen = [];
    for (let line; (line = await p.line()) !== "paused";) seen.push(line);
    await stock[ENGINE].op(g.ds, "main", "add", { rows: rows(100_000, 1) });
    assert.equal(
      (await must(run("ls", ["-U", dir]))).stdout.split("\n").filter(Boolean).length,
      FRAGMENTS + 1,
      "another listing sees the new file",
    );
    p.say("go on");
    for (let line; (line = await p.line().catch(() => undefined)) !== undefined;) seen.push(line);
    const listed = seen.map((l) => l.split(" ").slice(1).join(" ")),
      stayed = listed.filter((n) => real.includes(n));
    assert.deepEqual(stayed.sort(), real);
  },
);

test("C80 two readers that share one descriptor get every name once between them, and the listing ends", async (t) => {
  const g = await mounted(t, "v1_names", ENGINE),
    r = await must(run(await probePath(), ["getdents-shared", g.m.tree("main", "data"), "256"]));
  const names = lines(r)
    .map((l) => l.split(" ")[1])
    .filter((n) => !n.startsWith("."));
  assert.deepEqual(names.sort(), fs.readdirSync(path.join(g.ds, "data")).sort());
});

test("xattrs that every `ls -l` asks for are answered quickly, and unknown ones are no error in cp -a", async (t) => {
  const g = await mounted(t, "chain", ENGINE);
  await must(run("cp", ["-a", g.m.tree("feature"), path.join(g.w.dir, "copy")]));
  await must(run("ls", ["-lR", g.m.mnt]));
});

test("after a merge the listing follows, and the new file has the source's bytes", async (t) => {
  const g = await mounted(t, "overlap_deletes", ENGINE),
    list = async (d) => lines(await must(run("ls", ["-1", g.m.tree("main", d)])));
  const before = { data: await list("data"), versions: await list("_versions") };
  await merges(g, "main", "feature");
  const data = await list("data"),
    added = data.filter((f) => !before.data.includes(f));
  assert.equal(added.length, 1, "feature's file is listed");
  assert.equal((await list("_versions")).length, before.versions.length + 1);
  assert.equal(tip(g.ds), 7);
  await must(run("cmp", [g.m.tree("main", "data", added[0]), path.join(g.storage("feature"), "data", added[0])]));
});
