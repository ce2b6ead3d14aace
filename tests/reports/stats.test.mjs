// SPDX-License-Identifier: Apache-2.0
// MNT/.stats: the grammar of Prometheus' text format, and numbers that can be counted from outside.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { must, run, sh } from "../harness/proc.mjs";
import { ctl } from "../harness/control.mjs";
import { control, mounted, onEach } from "../harness/tip.mjs";
import { textOf, unchanged, untilKept } from "../harness/reports.mjs";

// What `promtool check metrics` asks for, as far as it goes here: lines of the format, HELP and TYPE once and before the
// samples, samples of a metric together, unique label sets, counters named _total, histograms whole and ascending.
export function parseMetrics(text) {
  assert.ok(text.endsWith("\n"));
  const meta = new Map(),
    samples = new Map();
  let current;
  for (const line of text.slice(0, -1).split("\n")) {
    const about = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    if (about) {
      const [, kind, name, value] = about,
        m = meta.get(name) ?? {};
      assert.equal(m[kind], undefined, `${kind} ${name} twice`);
      if (kind === "TYPE") assert.match(value, /^(counter|gauge|histogram|summary|untyped)$/);
      if (name !== current) assert.ok(!meta.has(name), `${name} is in two places`);
      current = name;
      meta.set(name, { ...m, [kind]: value });
      continue;
    }
    const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})? (\S+)$/.exec(line);
    assert.ok(sample, `not a line of the format: ${line}`);
    const [, name, labels = "", value] = sample;
    const base = meta.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
    assert.equal(base, current, `${name} stands with its own`);
    assert.ok(meta.get(base)?.HELP && meta.get(base)?.TYPE, `${base} has HELP and TYPE`);
    for (const l of labels ? labels.split(",") : []) assert.match(l, /^[a-zA-Z_][a-zA-Z0-9_]*="[^"\\\n]*"$/);
    assert.ok(Number.isFinite(Number(value)), `${line}: a number`);
    assert.ok(!samples.has(`${name}{${labels}}`), `${name}{${labels}} twice`);
    samples.set(`${name}{${labels}}`, Number(value));
  }
  for (const [name, m] of meta) {
    assert.equal(m.TYPE === "counter", name.endsWith("_total"), `${name} is a ${m.TYPE}`);
    if (m.TYPE === "histogram") checkHistogram(name, samples);
  }
  return samples;
}
function checkHistogram(name, samples) {
  const series = new Map();
  for (const [key, value] of samples) {
    const m = new RegExp(`^${name}_bucket\\{(.*),le="([^"]*)"\\}$`).exec(key);
    if (m) series.set(m[1], [...(series.get(m[1]) ?? []), [m[2] === "+Inf" ? Infinity : Number(m[2]), value]]);
  }
  assert.ok(series.size > 0);
  for (const [labels, buckets] of series) {
    for (let i = 1; i < buckets.length; i++) {
      assert.ok(buckets[i][0] > buckets[i - 1][0], `${name}{${labels}}: bounds ascend`);
      assert.ok(buckets[i][1] >= buckets[i - 1][1], `${name}{${labels}}: counts are cumulative`);
    }
    assert.equal(buckets.at(-1)[0], Infinity);
    assert.equal(samples.get(`${name}_count{${labels}}`), buckets.at(-1)[1]);
    assert.ok(samples.get(`${name}_sum{${labels}}`) >= 0);
  }
}
const stats = async (g) => parseMetrics(await textOf(path.join(g.m.mnt, ".stats")));

onEach("the format, the size, and that a walk does not meet it", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  await unchanged(g, async () => {
    await stats(g);
    const file = path.join(g.m.mnt, ".stats");
    await must(sh('cp "$1" "$2" && [ "$(stat -c %s "$2")" -gt 1000 ]', [file, path.join(g.w.dir, "copy")]));
    await must(sh('exec 7< "$1"; [ "$(stat -Lc %s /dev/fd/7)" = "$(wc -c <&7)" ]', [file]));
    assert.match((await must(run("tail", ["-n", "1", file]))).stdout, /^lancefs_\w+ \d+$/m);
  });
  assert.ok(!fs.readdirSync(g.m.mnt).includes(".stats"), "every look at it differs: no archive wants it");
});

onEach("commands by verb and result, bytes, operations, handles and lookups", async (t, engine) => {
  const g = await mounted(t, "delete_vs_update", engine, { options: ["passthrough=off"] });
  const names = fs.readdirSync(g.m.tree("")).filter((n) => n !== "main"),
    seen = {};
  const before = await stats(g);
  let bytes = 0;
  for (const n of names) {
    const line = `${n} dry-run`;
    const r = await ctl(control(g, "main"), line);
    bytes += Buffer.byteLength(line) + 1;
    seen[r.answer.result] = (seen[r.answer.result] ?? 0) + 1;
  }
  const after = await stats(g),
    grown = (key) => after.get(key) - before.get(key);
  for (const result of ["merged", "dry-run", "conflict", "refused", "error", "up-to-date"])
    assert.equal(grown(`lancefs_commands_total{verb="merge",result="${result}"}`), seen[result] ?? 0, result);
  assert.ok(seen.conflict > 0 && seen["dry-run"] > 0, JSON.stringify(seen));
  assert.equal(grown('lancefs_command_seconds_count{verb="merge"}'), names.length);
  assert.equal(grown("lancefs_written_bytes_total{}"), bytes);
  assert.equal(grown('lancefs_operation_seconds_count{operation="write"}'), names.length);

  // the mount's own verb, and verbs of the shell
  await ctl(path.join(g.m.mnt, ".gc"), "dry-run");
  await must(sh('cd "$1" && mkdir tree/new && mv tree/new tree/newer && ln -s ../tree/newer tags/t && rm tags/t && rmdir tree/newer', [g.m.mnt]));
  const shell = await stats(g);
  assert.equal(shell.get('lancefs_command_seconds_count{verb="gc"}') - after.get('lancefs_command_seconds_count{verb="gc"}'), 1);
  for (const op of ["mkdir", "rename", "symlink", "unlink", "rmdir"]) {
    const key = `lancefs_operation_seconds_count{operation="${op}"}`;
    assert.equal(shell.get(key) - after.get(key), 1, op);
  }

  // a data file is read once, by the daemon, and its bytes are counted
  const data = g.m.tree("main", "data"),
    file = path.join(data, fs.readdirSync(data)[0]),
    size = fs.statSync(file).size,
    was = await stats(g);
  await must(run("cat", [file]));
  const is = await stats(g);
  assert.equal(is.get('lancefs_read_bytes_total{kind="stored"}') - was.get('lancefs_read_bytes_total{kind="stored"}'), size);

  // open handles: ten more while ten are open
  const open = await must(
    sh('a=$(grep "^lancefs_open_handles " "$1/.stats"); for i in 10 11 12 13 14 15 16 17 18 19; do eval "exec $i< \\"$2\\""; done; echo "$a"; grep "^lancefs_open_handles " "$1/.stats"', [g.m.mnt, file]),
  );
  const [a, b] = open.stdout.trim().split("\n").map((l) => Number(l.split(" ")[1]));
  assert.equal(b - a, 10);
  assert.ok(is.get("lancefs_lookups_held{}") >= is.get("lancefs_nodes{}") && is.get("lancefs_nodes{}") > 0);
});

// From outside: each command's time as the shell sees it is an upper bound of the longest; the histogram bounds the rest.
test("seconds by quantile: of what was run alone, ascending, within the histogram's buckets and what the caller waited", async (t) => {
  const g = await mounted(t, "delete_vs_update", "lance12"),
    key = (q) => `lancefs_command_quantile_seconds{verb="merge",quantile="${q}"}`;
  assert.equal((await stats(g)).get(key("0.5")), undefined, "no command, no quantile");
  const waited = [];
  for (let i = 0; i < 5; i++) {
    const start = performance.now();
    await ctl(control(g, "main"), "u_u dry-run");
    waited.push((performance.now() - start) / 1000);
  }
  const s = await stats(g),
    [half, most, nearly] = ["0.5", "0.9", "0.99"].map((q) => s.get(key(q)));
  assert.ok(half > 0 && half <= most && most <= nearly, `${half} ${most} ${nearly}`);
  assert.ok(nearly <= Math.max(...waited), "no longer than the shell waited");
  assert.ok(nearly * 5 >= s.get('lancefs_command_seconds_sum{verb="merge"}'), "the longest is not below the mean");
  const upTo = [...s].filter(([k]) => k.startsWith('lancefs_command_seconds_bucket{verb="merge",le="')).map(([k, n]) => [/le="(.*)"/.exec(k)[1], n]);
  const bucket = (rank) => Number(upTo.find(([, n]) => n >= rank)[0].replace("+Inf", "Infinity"));
  assert.ok(half <= bucket(3) && most <= bucket(5), "the third and the fifth of five");
  assert.equal(s.get('lancefs_command_quantile_seconds{verb="gc",quantile="0.5"}'), undefined);
  assert.ok(s.get('lancefs_operation_quantile_seconds{operation="write",quantile="0.99"}') >= 0);
});

onEach("caches: a second look hits, sizes have bounds", async (t, engine) => {
  // two texts of .stats, which are long, must fit beside what is kept
  const g = await mounted(t, "chain", engine, { options: ["cache_mb=2"] });
  await untilKept(g, () => textOf(g.m.tree("feature", ".schema")));
  await textOf(g.m.tree("feature", ".schema"));
  const before = await stats(g);
  await textOf(g.m.tree("feature", ".schema"));
  const after = await stats(g);
  const hits = 'lancefs_cache_hits_total{cache="reports"}';
  assert.ok(after.get(hits) > before.get(hits));
  for (const b of ["main", "feature", "exp/sub", "old", "idle"])
    for (const o of ["main", "feature", "exp%2Fsub", "old", "idle"]) await textOf(g.m.tree(b, ".diff", o));
  await must(sh('cat "$1"/_versions/*', [g.m.tree("feature")]));
  const end = await stats(g);
  assert.ok(end.get('lancefs_cache_bytes{cache="reports"}') <= 1 << 20);
  for (const c of ["manifests", "rendered", "reports"]) assert.ok(end.get(`lancefs_cache_entries{cache="${c}"}`) > 0, c);
});

// The smallest cache holds a few of .stats' texts: looking at them a hundred times must not cost a report that was kept.
test("looks at .stats and .branches drive no report out of the cache, and are no misses of it", async (t) => {
  const g = await mounted(t, "chain", "lance12", { options: ["cache_mb=1"] }),
    names = [".stats", ".branches"].map((n) => path.join(g.m.mnt, n));
  await untilKept(g, () => textOf(g.m.tree("feature", ".schema")));
  const before = await stats(g);
  await must(sh('for i in $(seq 100); do cat "$1" "$2" > /dev/null || exit 1; done', names));
  const between = await stats(g);
  await textOf(g.m.tree("feature", ".schema"));
  const after = await stats(g),
    key = (what) => `lancefs_cache_${what}{cache="reports"}`;
  assert.equal(between.get(key("misses_total")), before.get(key("misses_total")));
  assert.ok(after.get(key("hits_total")) > between.get(key("hits_total")), "it is still there");
  assert.equal(after.get(key("misses_total")), before.get(key("misses_total")));
  assert.ok(after.get(key("entries")) <= before.get(key("entries")) + 8, "a few of them are kept");
});
