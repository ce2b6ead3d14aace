// SPDX-License-Identifier: Apache-2.0
// A table of thousands of fragments: what is looked at costs by the look, not by the fragment, and memory stays small.
// Times are told; only a tenfold of what is wanted fails, since other programs may have the machine.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { ctl } from "../harness/control.mjs";
import { must, run } from "../harness/proc.mjs";
import { textOf } from "../harness/reports.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, control, mounted } from "../harness/tip.mjs";

const ENGINE = "lance12",
  FRAGMENTS = 2000,
  MERGES = 20,
  SLACK = 10,
  MEMORY_MIB = 100;

const statistics = async (g) => {
  const text = await textOf(path.join(g.m.mnt, ".stats")),
    number = (name) => Number(new RegExp(`^${name.replace(/[{}]/g, "\\$&")} (\\d+)$`, "m").exec(text)[1]);
  return {
    decoded: number('lancefs_cache_misses_total{cache="manifests"}'),
    rendered: number('lancefs_cache_entries{cache="rendered"}'),
  };
};
const peakMiB = (pid) => Number(/VmHWM:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;

test("C66 2000 fragments: looks, merges of one row and memory", async (t) => {
  const g = await mounted(t, "big_manifest", ENGINE, { generated: { args: [String(FRAGMENTS)] } }),
    main = g.m.tree("main"),
    expected = [...Array(FRAGMENTS - 2).fill(rows(0, 1)[0]), ...rows(FRAGMENTS - 2, 2)]; // one file under many names
  const within = async (what, limitMs, fn) => {
    const start = process.hrtime.bigint();
    await fn();
    const ms = Number(process.hrtime.bigint() - start) / 1e6;
    t.diagnostic(`${what}: ${ms.toFixed(0)} ms, ${limitMs} wanted`);
    assert.ok(ms < SLACK * limitMs, `${what} took ${ms.toFixed(0)} ms`);
  };
  const all = (...words) => must(run(words[0], words.slice(1)));
  await within("the first listing", 1000, () => all("ls", main));
  const before = await statistics(g);
  await within("the first ls -U _versions", 1000, () => all("ls", "-U", path.join(main, "_versions")));
  assert.deepEqual(await statistics(g), before, "names of versions are no reason to open one");
  for (const [look, limitMs] of [["first", 2000], ["second", 500]])
    for (const how of ["-U", "-l", "-la"])
      await within(`the ${look} ls ${how} data`, limitMs, () => all("ls", how, "--color=always", path.join(main, "data")));
  const found = await all("find", path.join(main, "data"), "-type", "f", "-size", "+0");
  assert.equal(found.stdout.trim().split("\n").length, FRAGMENTS);

  const mergeNext = async (i) => {
    let r;
    await within(`merge ${i + 1}`, 2000, async () => (r = await ctl(control(g, "main"), "feature")));
    assert.equal(r.code, 0, r.answer.text);
  };
  expected.push(...rows(FRAGMENTS, 1, "f"));
  await mergeNext(0);
  for (let i = 1; i <= MERGES; i++) {
    const one = rows(1_000_000 + i, 1);
    await stock[ENGINE].op(g.ds, "feature", "add", { rows: one });
    await mergeNext(i);
    expected.push(...one);
  }
  const peak = peakMiB(g.m.pid);
  t.diagnostic(`${peak.toFixed(1)} MiB of memory at the most`);
  if (process.env.ASAN_OPTIONS) t.diagnostic("a sanitizer keeps what was freed: its memory is not bounded");
  else assert.ok(peak < MEMORY_MIB, `${peak.toFixed(1)} MiB of memory`);
  await checkThenUnmount(g, { main: expected });
});
