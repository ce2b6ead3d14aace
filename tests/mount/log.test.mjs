// SPDX-License-Identifier: Apache-2.0
// The log: what a user got as an error number stands there with its cause, and SIGHUP makes a new file.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { converse, LIMIT_MS, must, run, sh } from "../harness/proc.mjs";
import { control } from "../harness/tip.mjs";
import { generate, LANCEFS, probePath, workspace } from "../harness/workspace.mjs";

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
  assert.match(line, /^\S+Z warning file=\.merge branch=main command="nosuch" errno=2 cause=".*nosuch/);
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

// TIME LEVEL and then key=value pairs, values with blanks in quotes.
const LINE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (error|warning|info|debug)( [a-z_]+=("(\\.|[^"\\])*"|[^ "]*))+$/;
const lines = (text) => text.split("\n").filter(Boolean);

test("each error number that a user gets is found with its cause; reading and listing write nothing; lines are pairs", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    m = await mount(w, g.ds, { options: ["log_level=debug"] }),
    data = fs.readdirSync(path.join(g.ds, "data"))[0];
  // [what a shell does, what it is told, what the log says]
  const wrong = [
    ["echo nosuch > tree/main/.merge", "No such file", /file=\.merge .*errno=2 cause=".*nosuch/],
    ["echo 'feature color=red' > tree/main/.merge", "Invalid argument", /command="feature color=red" errno=22 cause=".*color/],
    [`echo x > tree/main/data/${data}`, "Operation not permitted", new RegExp(`operation=open path="data/${data}" errno=1 cause="what is published`)],
    ["chmod 700 tree/feature", "Operation not permitted", /operation=setattr path="tree\/feature" errno=1 cause="/],
    ["touch tree/main/x", "Operation not permitted", /operation=create path="tree\/main\/x" errno=1 cause="/],
    ["touch tree/main/.preview/feature/data/x", "Read-only", /path="tree\/main\/\.preview\/feature\/data" errno=30 cause="versions, tags/],
    ["mkdir 'tree/a b'", "Invalid argument", /operation="mkdir .*errno=22 cause=".+"/],
    ["mv tree/main tree/other", "", /errno=\d+ cause=".+"/],
    ["ln -s nowhere tags/t", "Invalid argument", /errno=22 cause="/],
    ["rm -f tree/main/_versions/*.manifest", "Operation not permitted", /msg="_versions.*is not removed for a process that has read no manifest/],
  ];
  for (const [script, told, logged] of wrong) {
    const before = m.log().length,
      r = await sh(script, [], { cwd: m.mnt, env: { LC_ALL: "C" } });
    assert.notEqual(r.code, 0, script);
    assert.ok(r.stderr.includes(told), `${script}: ${r.stderr}`);
    assert.match(m.log().slice(before), logged, script);
  }
  for (const line of lines(m.log())) assert.match(line, LINE);
  const before = m.log().length;
  await must(sh('find . | wc -l; ls -lR tree > /dev/null; cat tree/main/data/* tree/main/_versions/* tree/main/.log > /dev/null; stat tree/nosuch 2> /dev/null; getfattr -d tree/main > /dev/null 2>&1; cat .stats > /dev/null', [], { cwd: m.mnt }));
  assert.equal(m.log().slice(before).split("\n").filter((l) => !l.includes(" debug ")).join("\n"), "", "nothing on the way of reading");
});

test("one refusal a thousand times is a few lines", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", "lance12"),
    m = await mount(w, g.ds);
  await sh("for i in $(seq 1000); do : > tree/main/x$i; done 2> /dev/null", [], { cwd: m.mnt });
  const n = lines(m.log()).filter((l) => l.includes("operation=create")).length;
  assert.ok(n >= 1 && n <= 400, `${n} lines`);
});

// Whoever listens at /dev/log, in a mount namespace whose /dev is the test's own.
test("in the background without a file lines go to syslog, as log_file=syslog; in the foreground to standard error", async (t) => {
  const w = workspace(t);
  if (process.getuid() !== 0) return t.skip("only root can give a daemon another /dev/log");
  const g = await generate(w, "siblings", "lance12"),
    socket = path.join(w.dir, "log"),
    dev = path.join(w.dir, "dev");
  fs.mkdirSync(dev);
  const listener = converse(await probePath(), ["receive", socket]);
  assert.equal(await listener.line(), "bound");
  const script = `set -e
    for d in fuse null zero urandom; do : > "$1/$d"; mount --bind /dev/$d "$1/$d"; done
    ln -s "$2" "$1/log"
    mount --rbind "$1" /dev
    mkdir "$3/mnt"; "$4" -o log_level=warning "$5" "$3/mnt" 2>&1 | cat
    echo nosuch > "$3/mnt/tree/main/.merge" || true
    umount "$3/mnt"`;
  const r = await run("unshare", ["--mount", "--propagation", "private", "bash", "-c", script, "sh", dev, socket, w.dir, LANCEFS, g.ds], { env: { LC_ALL: "C" } });
  assert.equal(r.code, 0, r.stderr);
  const line = await listener.line();
  assert.match(line, /^<28>.* lancefs\[\d+\]: warning file=\.merge branch=main command="nosuch" errno=2 cause="/, line);
  // in the foreground, to a pipe that systemd says is the journal: with its priority
  const mnt = path.join(w.dir, "mnt"),
    script2 = `exec 3>&1; ino=$(stat -L -c %d:%i /dev/fd/3); JOURNAL_STREAM=$ino "$1" -f "$2" "$3" 2>&3 & until ls "$3/tree" > /dev/null 2>&1; do kill -0 $! || exit 3; done
      echo nosuch > "$3/tree/main/.merge"; fusermount3 -u "$3"; wait $!`;
  w.defer(() => run("fusermount3", ["-uzq", mnt]));
  const f = await sh(script2, [LANCEFS, g.ds, mnt], { env: { LC_ALL: "C" } });
  assert.match(f.stdout, /^<4>warning file=\.merge branch=main command="nosuch"/m, f.stderr);
  const g2 = await sh(script2.replace("JOURNAL_STREAM=$ino ", ""), [LANCEFS, g.ds, mnt], { env: { LC_ALL: "C" } });
  assert.match(g2.stdout, /^\S+Z warning file=\.merge/m, g2.stderr);
});
