// SPDX-License-Identifier: Apache-2.0
// C82: what changes behind the mount. Who looks again (stat, cat, watch, tail -F) sees it; who holds a report open reads that
// one to its end, and nothing is repeated or cut; inotify hears of nothing that it did not do itself.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { converse, LIMIT_MS, must, run } from "../harness/proc.mjs";
import { report, textOf } from "../harness/reports.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { control, merges, mounted, onEach } from "../harness/tip.mjs";
import { needs } from "../harness/workspace.mjs";

const add = (g, engine, branch, from) => stock[engine].op(g.ds, branch, "add", { rows: rows(from, 1, "o") });

async function until(look, what) {
  for (const end = Date.now() + LIMIT_MS; ; ) {
    const seen = await look();
    if (seen) return seen;
    assert.ok(Date.now() < end, what);
    await new Promise((r) => setTimeout(r, 20));
  }
}

onEach("C82 a commit from outside shows at the very next look: stat and cat, with no wait", async (t, engine) => {
  const g = await mounted(t, "chain", engine),
    file = report(g, "feature", ".status");
  for (let i = 0; i < 3; i++) {
    const text = await textOf(file),
      { mtimeMs } = fs.statSync(file);
    await add(g, engine, "feature", 900 + i);
    const now = await textOf(file);
    assert.notEqual(now, text);
    assert.equal(Number(/^rows\t(\d+)$/m.exec(now)[1]), Number(/^rows\t(\d+)$/m.exec(text)[1]) + 1);
    assert.equal(fs.statSync(file).size, Buffer.byteLength(now));
    assert.ok(fs.statSync(file).mtimeMs > mtimeMs, "its time has moved on");
  }
});

test("C82 tail -F of .log shows each new text whole, one after the other; tail -f ends with the one that it opened", async (t) => {
  const g = await mounted(t, "chain", "lance12"),
    file = report(g, "main", ".log"),
    first = await textOf(file);
  const byName = converse("tail", ["-n", "+1", "-s", "0.05", "-F", file], { limitMs: 3 * LIMIT_MS }),
    byDescriptor = converse("tail", ["-n", "+1", "-s", "0.05", "-f", file], { limitMs: 3 * LIMIT_MS });
  const take = async (tail, text) => {
    let seen = "";
    while (seen.length < text.length) seen += `${await tail.line()}\n`;
    return seen;
  };
  assert.equal(await take(byName, first), first);
  assert.equal(await take(byDescriptor, first), first);
  await add(g, "lance12", "main", 900);
  const second = await textOf(file);
  assert.notEqual(second, first);
  assert.equal(await take(byName, second), second, "the new text from its beginning, no line twice and none cut");
  await merges(g, "main", "feature");
  const third = await textOf(file);
  assert.equal(await take(byName, third), third);
  for (const tail of [byName, byDescriptor]) {
    await tail.kill();
    await assert.rejects(tail.line(), "no more came: what was opened has not grown");
  }
});

test("C82 watch's way: cat in a loop sees the merge, and each text is whole", async (t) => {
  const g = await mounted(t, "chain", "lance12"),
    file = report(g, "main", ".status");
  const merged = merges(g, "main", "feature");
  const last = await until(async () => {
    const text = await textOf(file);
    assert.match(text, /^# key\tvalue\n/);
    assert.match(text, /\nformat\t.*\n$/, "whole");
    return /^last-merge\t\d+\tfeature/m.test(text) && text;
  }, "the merge never showed");
  await merged;
  assert.equal(await textOf(file), last);
});

test("C82 inotify on the mount neither fails nor hangs, and hears what is opened there", async (t) => {
  if (!(await needs(t, "python3"))) return;
  const g = await mounted(t, "chain", "lance12");
  const script = `
import ctypes, os, select, sys
c = ctypes.CDLL(None, use_errno=True)
fd = c.inotify_init()
for p in sys.argv[1:]:
    assert c.inotify_add_watch(fd, p.encode(), 0xfff) >= 0, (p, ctypes.get_errno())
open(sys.argv[1]).read()
print(len(select.select([fd], [], [], 10)[0]))`;
  const r = await must(run("python3", ["-c", script, report(g, "main", ".status"), g.m.tree("main"), control(g, "main"), g.m.mnt]));
  assert.equal(r.stdout.trim(), "1");
});
