// SPDX-License-Identifier: Apache-2.0
// Reports as files: exact sizes for every program, one text for whoever opened it, no byte written, big tables, copies.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { mount } from "../harness/mount.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { expectRows, rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { merges, mounted, onEach } from "../harness/tip.mjs";
import { ENGINES, generate, needs, snapshot, difference, workspace } from "../harness/workspace.mjs";
import { aborts, chooses, conflictsDir, stopsOn } from "../harness/conflicts.mjs";
import { previewOf } from "../harness/previews.mjs";
import { checkSizes, FILES, parseReport, read, report, status, textOf, unchanged } from "../harness/reports.mjs";

const BRANCHES = ["main", "feature", "exp/sub", "old"];

onEach("C29 stat, cat, wc, cp, dd, tail, head and diff agree on every report, before and after a merge", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  const all = async () => {
    for (const b of BRANCHES)
      for (const name of [...FILES, ".diff/main", ".diff/exp%2Fsub", ".diff/feature@2"])
        await checkSizes(report(g, b, name), path.join(g.w.dir, "copy"));
  };
  await unchanged(g, all);
  await merges(g, "main", "feature");
  await unchanged(g, all);
});

// Reads every file below a directory, hidden ones too.
const readAll = (dir) => must(sh('find "$1" -type f -exec cat {} + > /dev/null', [dir]));

onEach("every kind of look leaves the storage as it is: reports, the past, tags, previews, conflicts, control files", async (t, engine) => {
  const g = await mounted(t, "delete_vs_update", engine);
  fs.symlinkSync("../tree/main/.versions/2", path.join(g.m.mnt, "tags", "t"));
  const previews = ["u_o", "u_o strategy=source-wins", "u_u strategy=dest-wins", "u_o mode=copy"].map((line) => previewOf(g, "main", line)),
    past = [g.m.tree("main", ".versions", "1"), path.join(g.m.mnt, "tags", "t")];
  await unchanged(g, async () => {
    await readAll(g.m.mnt); // reports and control files of every branch, .branches, .fsck, data, manifests
    await textOf(path.join(g.m.mnt, ".stats"));
    for (const ref of ["u_o", "u_u", "d_u", "u_o@1", "tags/t"]) await textOf(report(g, "main", `.diff/${ref}`));
    for (const line of ["u_o dry-run", "u_u dry-run", "u_u strategy=source-wins dry-run"]) await textOf(previewOf(g, "main", line));
    for (const dir of [...previews, ...past]) await readAll(`${dir}/`);
    await sh('getfattr -R -d -m - "$1"', [g.m.tree("main")]);
  });
  await stopsOn(g, "main", "u_u", 1);
  await unchanged(g, async () => {
    await readAll(conflictsDir(g, "main"));
    await chooses(g, "main", 0, "theirs");
    await textOf(report(g, "main", ".status"));
    for (const e of ENGINES)
      for (const dir of [...previews, ...past, path.join(conflictsDir(g, "main"), "0", "ours.lance")]) await stock[e].read(dir);
    await aborts(g, "main");
  });
  await unchanged(g, () => g.m.unmount());
});

onEach("a read-only mount has them too; nothing can be written, cut, removed or put in their place", async (t, engine) => {
  const g = await mounted(t, "chain", engine, { options: ["ro"] });
  await unchanged(g, async () => {
    for (const name of [...FILES, ".diff/main"]) await checkSizes(report(g, "feature", name), path.join(g.w.dir, "copy"));
  });
  const h = await mounted(t, "overlap_deletes", engine);
  await unchanged(h, async () => {
    for (const name of [".log", ".diff/main"])
      for (const script of ['echo x > "$1"', 'echo x >> "$1"', 'truncate -s 0 "$1"', 'rm -f "$1"', 'mv "$1" "$1.x"', 'chmod 777 "$1"', 'touch "$1"', 'ln "$1" "$1.x"', 'mv "$2" "$1"', 'mkdir "$1"', 'touch "$1.x"']) {
        const other = path.join(h.w.dir, "other");
        fs.writeFileSync(other, "x");
        const r = await sh(script, [report(h, "feature", name), other], { env: { LC_ALL: "C" } });
        assert.notEqual(r.code, 0, `${script} ${name}`);
      }
    assert.equal((await read(h, "feature", ".log")).rows[0].branch, "feature");
  });
});

onEach("they are listed beside the control files, and a copy of the branch is a working data set", async (t, engine) => {
  const g = await mounted(t, "chain", engine),
    to = path.join(g.w.dir, "copy.lance");
  const shown = (await must(run("ls", ["-A", g.m.tree("feature")]))).stdout.split("\n");
  for (const name of FILES) assert.ok(shown.includes(name), name);
  await must(run("cp", ["-r", g.m.tree("feature"), to]));
  await must(run("cmp", [path.join(to, ".log"), report(g, "feature", ".log")]));
  const expected = await stock[engine].read(g.ds, "feature");
  for (const e of ENGINES) {
    const copy = await stock[e].read(to);
    assert.deepEqual(copy.rows, expected.rows);
  }
  await must(sh('find "$1" -type f -exec cat {} + > /dev/null && grep -r feature "$1" > /dev/null', [g.m.mnt]));
});

test("less, rsync, sort and grep take them", async (t) => {
  const g = await mounted(t, "chain", "lance12"),
    log = report(g, "feature", ".log");
  const sorted = (await must(sh('sort -n "$1"', [log]))).stdout.split("\n").filter(Boolean);
  assert.match(sorted[0], /^#/, "the header stays on top");
  assert.equal((await must(sh('grep -c append "$1"', [log]))).stdout.trim(), String((await read(g, "feature", ".log")).rows.filter((r) => r.operation === "append").length));
  if (await needs(t, "rsync")) {
    const to = path.join(g.w.dir, "r");
    await must(run("rsync", ["-a", log, to]));
    assert.equal(fs.readFileSync(to, "utf8"), await textOf(log));
  }
});

onEach("who opened a report reads it to the end; the next look is new, and every look is whole", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    file = report(g, "main", ".log");
  const before = await textOf(file),
    held = converse("bash", ["-c", 'exec 7< "$1"; stat -Lc %s /dev/fd/7; read -r go; cat <&7; stat -Lc "END %s" /dev/fd/7', "sh", file]);
  assert.equal(Number(await held.line()), Buffer.byteLength(before));
  await stock[engine].op(g.ds, "main", "add", { rows: rows(500, 1) });
  const after = await textOf(file);
  assert.notEqual(after, before);
  held.say("go");
  const lines = [];
  for (let l; !(l = await held.line()).startsWith("END"); ) lines.push(l);
  await held.ended;
  assert.equal(`${lines.join("\n")}\n`, before);
  assert.deepEqual(parseReport(after).rows.slice(1), parseReport(before).rows);
});

onEach("reading all reports while others commit: never half a text, sizes as read", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  const script = `
    n=0
    while [ ! -e "$2" ]; do
      for f in .log .log.graph .status .files .stale .manifest.json .diff/feature; do
        exec 7< "$1/$f" || exit 1
        s=$(stat -Lc %s /dev/fd/7); m=$(wc -c <&7); [ "$s" = "$m" ] || { echo "$f: $s $m"; exit 1; }
        exec 7<&-
      done
      n=$((n + 1))
    done; echo "looks $n"`;
  const stop = path.join(g.w.dir, "stop");
  const readers = [1, 2].map(() => sh(script, [g.m.tree("main"), stop]));
  for (let i = 0; i < 6; i++) await stock[engine].op(g.ds, "main", "add", { rows: rows(600 + i, 1) });
  await merges(g, "main", "feature");
  fs.writeFileSync(stop, "");
  for (const r of await Promise.all(readers)) {
    assert.equal(r.code, 0, r.stdout + r.stderr);
    assert.match(r.stdout, /looks [1-9]/);
  }
  assert.equal((await read(g, "main", ".log")).rows[0].operation, "merge");
});

test("2000 fragments and versions: exact, and in seconds", async (t) => {
  const n = 2000,
    g = await mounted(t, "many_fragments", "lance12", { generated: { args: [String(n)] } });
  const time = async (name, branch = "wide") => {
    const start = process.hrtime.bigint(),
      text = await textOf(report(g, branch, name)),
      ms = Number(process.hrtime.bigint() - start) / 1e6;
    t.diagnostic(`${name}: ${Buffer.byteLength(text)} bytes, ${ms.toFixed(0)} ms`);
    assert.ok(ms < 30_000, `${name} took ${ms} ms`);
    return text;
  };
  const before = snapshot(g.root);
  for (const name of FILES) {
    const text = await time(name);
    if (name === ".files") assert.equal(parseReport(text).rows.length, n + 20);
    if (name === ".log") assert.equal(parseReport(text).rows.length, n + 21);
    if (name === ".manifest.json") assert.equal(JSON.parse(text).manifest.fragments.length, n + 20);
    await checkSizes(report(g, "wide", name), path.join(g.w.dir, "copy"));
  }
  assert.equal(parseReport(await time(".diff/wide", "main")).rows.length, 20);
  assert.equal((await status(g, "wide")).rows, String(n + 20));
  assert.deepEqual(difference(before, snapshot(g.root)), []);
  // names alone cost no report
  const start = process.hrtime.bigint();
  const h = await mount(g.w, g.ds);
  await must(run("ls", ["-A", h.tree("wide")]));
  assert.ok(Number(process.hrtime.bigint() - start) / 1e6 < 5000);
});

onEach("a manifest that cannot be read: the reports say so, and the mount lives", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  fs.writeFileSync(path.join(g.ds, "_versions", load(g.ds).name), "no manifest");
  for (const name of FILES.filter((f) => f !== ".manifest.json")) {
    const r = await read(g, "main", name);
    assert.match(r.text, /cannot be told/, name);
    assert.equal(r.rows.length, 0, name);
  }
  assert.notEqual((await run("cat", [report(g, "main", ".manifest.json")])).code, 0);
  assert.equal((await read(g, "feature", ".log")).rows.length, 5);
  await must(run("ls", ["-l", g.m.tree("feature")]));
});
