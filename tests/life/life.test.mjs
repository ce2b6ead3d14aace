// SPDX-License-Identifier: Apache-2.0
// A mount's life: signals and kills, interrupted commands, few descriptors, storms of lookups, long names, readers while
// a merge runs (C43 C46 C47 C77 C78 C79).
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { ctl, ctlThrough } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { OVERLAP, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, control, merges, mounted, onEach } from "../harness/tip.mjs";
import { difference, probe, snapshot } from "../harness/workspace.mjs";

const ENGINE = "lance12",
  SCALE = 0.2,
  VERSIONS = { generated: { args: [String(SCALE)] } }; // 100 of main, 40 of long
// What tests/interop/many_versions.mjs writes: row 0, then for each version its row, each fiftieth deletes one instead.
const MAIN = without(
  [0, ...span(2, 500 * SCALE).filter((i) => i % 50)].flatMap((i) => rows(i, 1)),
  ...span(2, 500 * SCALE)
    .filter((i) => i % 50 === 0)
    .map((i) => i - 7),
);
const BOTH = [...MAIN, ...span(0, 200 * SCALE - 1).flatMap((i) => rows(10_000 + i, 1, "l"))];

const ended = async (pid) => (await probe("wait-exit", String(pid))).code === 0;
const descriptors = (g) => fs.readdirSync(`/proc/${g.m.pid}/fd`).length;
const resident = (g) => Number(/^VmRSS:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${g.m.pid}/status`, "utf8"))[1]);

test("C43 a caller that is interrupted: nothing was done, or all of it, once; never a caller that hangs", async (t) => {
  const g = await mounted(t, "many_versions", ENGINE, VERSIONS),
    tip = () => fs.readdirSync(`${g.ds}/_versions`).filter((n) => n.endsWith(".manifest")).length,
    before = tip();
  for (let ms = 1; ms < 400 && tip() === before; ms = Math.ceil(ms * 1.4)) {
    const r = await sh('timeout -s INT "$1" bash -c \'echo long > "$0"\' "$2"; exit 0', [ms / 1000, control(g, "main")], {
      limitMs: 30_000,
    });
    assert.equal(r.timedOut, false, "the caller ends");
    assert.ok(tip() - before <= 1);
    await checkTip(g, "main", tip() === before ? MAIN : BOTH, { storage: false });
  }
  const answer = (await ctl(control(g, "main"), "long")).answer;
  assert.match(answer.result, /^(merged|up-to-date)$/);
  assert.equal(tip(), before + 1, "one version, whoever made it");
  await checkTip(g, "main", BOTH);
});

test("C46 find, and names that are not there, over and over: memory does not grow", async (t) => {
  const g = await mounted(t, "many_fragments", ENGINE, { generated: { args: ["60"] } });
  const rounds = (n) =>
    must(sh('for ((i = 0; i < $2; i++)); do find "$1" -ls > /dev/null; done', [g.m.mnt, n], { limitMs: 300_000 }));
  await rounds(10);
  const start = resident(g);
  await rounds(60);
  await sh('cd "$1/tree/main/data" && ls -d nothing-{1..5000} 2> /dev/null', [g.m.mnt], { limitMs: 120_000 });
  assert.ok(resident(g) <= start * 1.1, `${start} KiB, then ${resident(g)} KiB`);
});

test("C47 while a merge runs, readers and merges elsewhere are served", async (t) => {
  const g = await mounted(t, "many_versions", ENGINE, VERSIONS);
  await must(sh('mkdir "$1/tree/aside"', [g.m.mnt]));
  let running = true;
  const merge = ctl(control(g, "main"), "long").finally(() => (running = false));
  const aside = ctl(control(g, "aside"), "long");
  do {
    await must(sh('ls "$1/tree" && cat "$1"/tree/long/data/* > /dev/null', [g.m.mnt], { limitMs: 10_000 }));
  } while (running);
  for (const r of [await merge, await aside]) assert.equal(r.answer.result, "merged", r.answer.text);
  await checkTip(g, "main", BOTH);
  await checkTip(g, "aside", BOTH);
});

test("C47 two merges into one branch at once: one merges, the other finds it done", async (t) => {
  const g = await mounted(t, "many_versions", ENGINE, VERSIONS),
    tip = () => fs.readdirSync(`${g.ds}/_versions`).filter((n) => n.endsWith(".manifest")).length,
    before = tip(),
    both = await Promise.all([ctlThrough(control(g, "main"), "long\n"), ctlThrough(control(g, "main"), "long\n")]);
  assert.deepEqual(both.map((r) => r.answer.result).sort(), ["merged", "up-to-date"]);
  assert.equal(tip(), before + 1);
  await checkTip(g, "main", BOTH);
});

for (const signal of ["SIGTERM", "SIGINT"])
  test(`C77 ${signal} during a merge: it is done or it is not, the daemon ends, nothing stays mounted`, async (t) => {
    const g = await mounted(t, "many_versions", ENGINE, VERSIONS),
      caller = ctl(control(g, "main"), "long");
    process.kill(g.m.pid, signal);
    assert.ok(await ended(g.m.pid));
    await caller;
    assert.equal(g.m.isMounted(), false);
    g.m = await mount(g.w, g.ds);
    const again = await ctl(control(g, "main"), "long");
    assert.match(again.answer.result, /^(merged|up-to-date)$/);
    await checkTip(g, "main", BOTH);
  });

test("C77 SIGHUP does not end the daemon, nor does a shell that sits in the mount", async (t) => {
  const g = await mounted(t, "siblings", ENGINE),
    shell = converse("bash", ["-c", 'cd "$1" && echo in && read go', "sh", g.m.tree("main")]);
  assert.equal(await shell.line(), "in");
  process.kill(g.m.pid, "SIGHUP");
  await must(run("ls", [g.m.tree("main")]));
  assert.equal(g.m.isMounted(), true);
  await shell.kill();
});

test("C77 after kill -9 the next start at the same place works", async (t) => {
  const g = await mounted(t, "many_versions", ENGINE, VERSIONS),
    at = g.m.mnt,
    caller = ctl(control(g, "main"), "long");
  process.kill(g.m.pid, "SIGKILL");
  assert.ok(await ended(g.m.pid));
  await caller;
  g.m = await mount(g.w, g.ds, { at });
  assert.match((await ctl(control(g, "main"), "long")).answer.result, /^(merged|up-to-date)$/);
  await checkTip(g, "main", BOTH);
});

test("C77 umount -l with an open file: the reader goes on, and the daemon ends with it", async (t) => {
  const g = await mounted(t, "siblings", ENGINE),
    reader = converse("bash", ["-c", 'exec 7<"$1"/*.lance; echo open; read go; cat <&7 | wc -c', "sh", g.m.tree("main", "data")]);
  assert.equal(await reader.line(), "open");
  const [file] = fs.readdirSync(`${g.ds}/data`);
  await must(run("fusermount3", ["-uz", g.m.mnt]));
  assert.equal(g.m.isMounted(), false);
  reader.say("go");
  assert.equal(Number(await reader.line()), fs.statSync(`${g.ds}/data/${file}`).size);
  await reader.ended;
  assert.ok(await ended(g.m.pid));
});

test("C78 256 descriptors: 200 files held open, many readers, and a merge; afterwards as many as before", async (t) => {
  const n = 150,
    g = await mounted(t, "many_fragments", ENGINE, { generated: { args: [String(n)] } });
  await must(run("ls", ["-R", g.m.mnt]));
  const start = descriptors(g);
  await must(run("prlimit", ["--pid", String(g.m.pid), "--nofile=256:256"]));
  const hold = converse("bash", [
    "-c",
    'i=0; for f in "$1"/tree/main/data/* "$1"/tree/wide/data/*; do exec {fd}< "$f" || break; i=$((i + 1)); done; echo $i; read go',
    "sh",
    g.m.mnt,
  ]);
  assert.ok(Number(await hold.line()) >= 200, "200 files are open");
  await sh('cat "$1"/tree/*/data/* > /dev/null', [g.m.mnt]); // single files may fail with EMFILE
  const short = await ctl(control(g, "main"), "wide"); // merged, or refused whole
  if (short.code !== 0) assert.deepEqual(fs.readdirSync(`${g.ds}/_versions`).filter((x) => x.startsWith(".")), []);
  await hold.close();
  await sh('ls "$1"/tree/*/data/* | xargs -P 50 -n 5 md5sum > /dev/null', [g.m.mnt]);
  if (short.code !== 0) await merges(g, "main", "wide");
  await checkTip(g, "main", [...rows(0, n), ...span(0, 19).flatMap((i) => rows(n + i, 1, "w"))]);
  await must(sh('cat "$1"/tree/*/data/* > /dev/null', [g.m.mnt]));
  assert.ok(descriptors(g) <= start + 4, `${start} descriptors, then ${descriptors(g)}`);
});

test("C79 names that are too long are refused as such, everywhere", async (t) => {
  const g = await mounted(t, "siblings", ENGINE),
    before = snapshot(g.root);
  for (const length of [256, 4000, 5000]) {
    const name = "x".repeat(length);
    for (const place of ["", "/tree", "/tree/main", "/tree/main/data", "/tags", "/tables"]) {
      const r = await run("stat", [`${g.m.mnt}${place}/${name}`], { env: { LC_ALL: "C" } });
      assert.match(r.stderr, /File name too long/, `${length} bytes in ${place || "/"}`);
    }
    const made = await run("mkdir", [g.m.tree(name)], { env: { LC_ALL: "C" } });
    assert.match(made.stderr, /File name too long/);
  }
  const r = await run("stat", [g.m.tree("x".repeat(255))], { env: { LC_ALL: "C" } });
  assert.match(r.stderr, /No such file or directory|File name too long/);
  const merged = await ctl(control(g, "main"), "x".repeat(4096));
  assert.notEqual(merged.code, 0);
  assert.ok(["EINVAL", "ENOENT", "ENAMETOOLONG"].includes(merged.errno), `${merged.errno}`);
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

onEach("C79 a chain of 12 nested branches lists, reads and merges", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    names = span(1, 12).map((i) => span(1, i).map((k) => `level${k}`).join("/"));
  for (const name of names) await must(run("mkdir", [g.m.tree(name)]));
  const last = names.at(-1),
    ids = rows(7000, 1, "deep");
  await stock[engine].op(g.ds, last, "add", { rows: ids });
  await merges(g, names[0], last, "fast-forward");
  await checkTip(g, names[0], [...OVERLAP.main, ...ids]);
});
