// SPDX-License-Identifier: Apache-2.0
// .preview/<source>: what a merge would give, opened by both engines before the merge, with no byte written; and the same
// as what the merge then gives.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { expectRemembered, previewError, previewOf, rememberPreview } from "../harness/previews.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { changed, expectRows, OVERLAP, rows, span, without } from "../harness/rows.mjs";
import { checkSizes, textOf, unchanged } from "../harness/reports.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkTip, control, merges, mounted, onEach, stops } from "../harness/tip.mjs";
import { merge, scratch } from "../harness/verbs.mjs";
import { difference, ENGINES, needs, snapshot } from "../harness/workspace.mjs";

const { main: MAIN, feature: FEATURE, union: UNION } = OVERLAP;

// Both engines find exactly these rows in the preview, by filters through its indexes too, and nothing is written.
async function shows(g, target, line, expected) {
  const at = previewOf(g, target, line);
  await unchanged(g, async () => {
    for (const e of ENGINES) expectRows(await stock[e].read(at), expected, `${path.relative(g.m.mnt, at)}, read by ${e}`);
  });
}

// --- the same as the merge ---

onEach("overlap_deletes: the union is there before the merge, in both directions and by every name of the source", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  for (const line of ["feature", "tree/feature", "feature@6", "feature strategy=source-wins", "feature ff=never mode=copy"])
    await shows(g, "main", line, UNION);
  await shows(g, "feature", "main", UNION);
  await shows(g, "feature", "feature@3", FEATURE); // an older version of itself brings nothing
  await checkStorage(g, "main", MAIN);
  const remembered = rememberPreview(g, "main", "feature");
  await merges(g, "main", "feature");
  expectRemembered(g, "main", remembered);
  await checkTip(g, "main", UNION);
  await shows(g, "main", "feature", UNION); // up-to-date: the tip
  await shows(g, "feature", "main", UNION); // a fast-forward
  await merges(g, "feature", "main", "fast-forward");
  await checkTip(g, "feature", UNION);
});

const GENERATORS = [
  "overlap_deletes",
  "delete_vs_update",
  "siblings",
  "chain",
  "whole_fragments",
  "net_zero",
  "field_meta",
  "nested_types",
  "v1_names",
  "index_on_branch",
  "compaction",
  "add_columns",
  "drop_vs_edit",
  "overwrite_restore",
  "stable_row_ids",
  "tags",
  "cleaned",
];

for (const generator of GENERATORS)
  onEach(`${generator}: each branch into main, and main into each: preview and merge are one`, async (t, engine) => {
    const g = await mounted(t, generator, engine),
      branches = (await stock[engine].op(g.ds, "main", "branches")).value.filter((b) => b !== "main");
    assert.ok(branches.length > 0);
    let came = 0;
    for (const [target, source] of [...branches.map((b) => ["main", b]), ...branches.map((b) => [b, "main"])]) {
      const reader = ENGINES[came % 2],
        errno = await unchanged(g, () => previewError(g, target, source));
      const at = previewOf(g, target, source),
        seen = errno ? undefined : await stock[reader].read(at),
        remembered = errno ? undefined : rememberPreview(g, target, source);
      const before = tip(g.storage(target)),
        r = await ctl(control(g, target), source);
      assert.equal(r.errno, errno, `${source} into ${target}: ${r.answer.text}`);
      if (errno) continue;
      const after = await stock[reader].read(g.ds, target);
      assert.deepEqual(seen, after, `${source} into ${target}, read by ${reader}`);
      if (tip(g.storage(target)) > before) expectRemembered(g, target, remembered);
      came++;
    }
    assert.ok(came > 0, "some merge came through");
  });

onEach("bitmap_deletes: 200000 rows, masks of every kind", async (t, engine) => {
  const g = await mounted(t, "bitmap_deletes", engine);
  const live = (i) => !(i >= 70_000 && i <= 140_000) && i % 20_000 !== 1 && i % 3 !== 0;
  await shows(g, "main", "feature", span(0, 199_999).filter(live).map((id) => ({ id })));
});

onEach("strategies: what each option gives, side by side", async (t, engine) => {
  const g = await mounted(t, "delete_vs_update", engine),
    tip = without(changed(rows(0, 100), 12, { v: "main" }), 40);
  assert.equal(await previewError(g, "main", "u_u"), "ECANCELED");
  await shows(g, "main", "u_u strategy=source-wins", changed(tip, 12, { v: "branch" }));
  await shows(g, "main", "u_u rows=dest-wins", tip);
  await shows(g, "main", "u_o", changed(tip, 70, { v: "branch" }));
  await shows(g, "main", "u_o only=schema,config", tip);
  await checkTip(g, "main", tip);
  const remembered = rememberPreview(g, "main", "u_u strategy=source-wins");
  await merge(g, "main", "u_u strategy=source-wins");
  expectRemembered(g, "main", remembered);
  await checkTip(g, "main", changed(tip, 12, { v: "branch" }));
});

onEach("chain: names with a slash, tags, versions; sub-branches below the preview of their branch", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  await stock[engine].op(g.ds, "feature", "tag", { name: "v1", version: 3 });
  const BASE = rows(0, 11).map((r) => (r.id === 10 ? { id: 10, v: "m10", n: 10 } : r)), // ten rows and main's own
    f = [...without(BASE, 1), ...rows(100, 2, "f")],
    sub = [...without(f, 100), ...rows(200, 2, "s")],
    deep = [...without(sub, 6), ...rows(300, 2, "d")];
  const at = (...names) => g.m.tree("main", ".preview", ...names);
  await unchanged(g, async () => {
    for (const [dir, expected] of [
      [at("feature"), f],
      [at("exp", "sub"), sub],
      [at("exp%2Fsub"), sub],
      [at("tree", "exp", "sub"), sub],
      [at("exp", "sub", "deep"), deep],
      [at("exp%2Fsub%2Fdeep"), deep],
      [at("tags", "v1"), [...BASE, ...rows(100, 2, "f")]],
      [at("feature@3"), [...BASE, ...rows(100, 2, "f")]],
    ])
      expectRows(await stock[engine].read(dir), expected, path.relative(g.m.mnt, dir));
  });
  await must(sh('cd "$1" && [ "$(ls -A)" = "" ] && ls exp/sub/_versions', [at()]));
});

onEach("an index of the source is carried, one that is inherited is found; filters agree with scans", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine);
  const at = previewOf(g, "main", "feature");
  for (const e of ENGINES) {
    const seen = await stock[e].read(at);
    assert.deepEqual(seen.wrong, []);
    assert.ok(seen.indexes.includes("id_idx"), `${seen.indexes}`);
    assert.equal(seen.count, 1020);
  }
});

// --- what stands in the way ---

onEach("a preview that cannot be had fails as the merge does; its answer is a file", async (t, engine) => {
  const g = await mounted(t, "delete_vs_update", engine);
  const answer = (line) => textOf(`${previewOf(g, "main", line)},dry-run`);
  for (const [line, errno] of [
    ["u_u", "ECANCELED"],
    ["d_u", "ECANCELED"],
    ["u_o ff=only", "ECANCELED"],
    ["nobody", "ENOENT"],
    ["u_o@99", "ENOENT"],
    ["tags/none", "ENOENT"],
    ["u_o expect=99", "ESTALE"],
    ["u_o stratgy=fail", "EINVAL"],
    ["u_o strategy=perhaps", "EINVAL"],
    ["u_o replay", "EINVAL"],
    ["u_o steps=2", "EINVAL"],
    ["u_o base=u_u", "EINVAL"],
  ])
    assert.equal(await unchanged(g, () => previewError(g, "main", line)), errno, line);
  const conflict = await answer("u_u");
  assert.match(conflict, /^result: conflict$/m);
  assert.match(conflict, /row 12 of fragment 0/);
  const { text } = await stops(g, "main", "u_u dry-run", "ECANCELED", "conflict");
  assert.equal(conflict, text.split("\n").filter((l) => !l.startsWith("#")).join("\n"), "what the command answers");
  assert.match(await answer("u_o"), /^result: dry-run\nwould-be: merged$/m);
  assert.match(await answer("u_o stratgy=fail"), /^result: error\nerror: .*stratgy/m);
  assert.equal((await run("cat", [`${previewOf(g, "main", "nobody")},dry-run`])).code, 1);
  await unchanged(g, () => checkSizes(`${previewOf(g, "main", "u_u")},dry-run`, path.join(g.w.dir, "copy")));
});

// --- as files ---

const CHANGES = [
  'echo x > "$1/_versions/1.manifest"',
  'touch "$1/x"',
  'mkdir "$1/x"',
  'mkdir "$1/data/x"',
  'rmdir "$1/data"',
  'rm "$1"/_versions/*',
  'rm "$1"/data/*',
  'ln -s x "$1/data/x"',
  'ln "$(ls -d "$1"/data/*.lance | head -n 1)" "$1/data/x"',
  'mv "$1/data" "$1/x"',
  'mv "$1" "$1-x"',
  'echo x >> "$(ls "$1"/_versions/*)"',
  'truncate -s 0 "$1"/_deletions/*.bin',
  'chmod 777 "$1/_versions"',
  'chmod 777 "$1"/_versions/*',
  'mkfifo "$1/x"',
  'mkdir "$(dirname "$1")/x"',
  'touch "$(dirname "$1")/x"',
];
onEach("nothing in it can be changed: EROFS", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  for (const script of CHANGES) {
    const r = await unchanged(g, () => sh(script, [previewOf(g, "main", "feature")], { env: { LC_ALL: "C" } }));
    assert.notEqual(r.code, 0, script);
    assert.match(r.stderr, /Read-only file system/, script);
  }
  await shows(g, "main", "feature", UNION);
});

onEach("C29 every file of it has the size that stat says; a copy is a data set of its own", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine),
    at = previewOf(g, "main", "feature"),
    to = path.join(g.w.dir, "copy.lance");
  const files = (await must(sh('cd "$1" && find . -type f', [at]))).stdout.split("\n").filter(Boolean);
  for (const kind of ["./data/", "./_deletions/", "./_indices/", "./_versions/", "./_transactions/"])
    assert.ok(files.some((f) => f.startsWith(kind)), `${kind}: ${files}`);
  await unchanged(g, async () => {
    for (const f of files) await checkSizes(path.join(at, f), path.join(g.w.dir, "one"));
  });
  const seen = await stock[engine].read(at);
  await must(run("cp", ["-r", at, to]));
  await must(run("diff", ["-r", at, to]));
  if (await needs(t, "rsync")) await must(run("rsync", ["-a", "--checksum", `${at}/`, `${to}.r`]));
  await g.m.unmount();
  await must(run("rm", ["-r", g.ds])); // it needs nothing of where it came from
  for (const e of ENGINES) assert.deepEqual(await stock[e].read(to), seen, `the copy, read by ${e}`);
});

onEach("a read-only mount has previews too", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine, { options: ["ro"] });
  await shows(g, "main", "feature", UNION);
  assert.match(await textOf(`${previewOf(g, "main", "feature")},dry-run`), /^result: dry-run$/m);
});

for (const mode of ["link", "copy"])
  test(`-o mode=${mode}: the preview is the same`, async (t) => {
    const g = await mounted(t, "overlap_deletes", "lance12", { options: [`mode=${mode}`] });
    await shows(g, "main", "feature", UNION);
    const remembered = rememberPreview(g, "main", "feature");
    await merges(g, "main", "feature");
    expectRemembered(g, "main", remembered);
  });

// --- time ---

onEach("when the tip moves the next look is the new plan; an open file is read to its end", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    at = previewOf(g, "main", "feature"),
    [name] = fs.readdirSync(path.join(at, "_versions")),
    masks = fs.readdirSync(path.join(at, "_deletions")).map((f) => path.join(at, "_deletions", f));
  const old = masks.map((f) => fs.readFileSync(f));
  const before = fs.readFileSync(path.join(at, "_versions", name)),
    held = converse("bash", ["-c", 'exec 7< "$1"; echo open; read -r go; sha1sum <&7', "sh", path.join(at, "_versions", name)]);
  assert.equal(await held.line(), "open");
  await stock[engine].op(g.ds, "main", "add", { rows: rows(5000, 1) });
  await shows(g, "main", "feature", [...UNION, ...rows(5000, 1)]);
  await stock[engine].op(g.ds, "feature", "delete", { where: "id = 1000" });
  await shows(g, "main", "feature", [...without(UNION, 1000), ...rows(5000, 1)]);
  await shows(g, "main", "feature@6", [...UNION, ...rows(5000, 1)]);
  assert.notDeepEqual(fs.readdirSync(path.join(at, "_versions")), [name]);
  await stock[engine].op(g.ds, "feature", "delete", { where: "id IN (5, 105, 205)" });
  await shows(g, "main", "feature", without([...UNION, ...rows(5000, 1)], 5, 105, 205, 1000));
  for (const f of masks) assert.ok(!fs.readdirSync(path.dirname(f)).includes(path.basename(f)), "other masks now");
  masks.forEach((f, i) => assert.deepEqual(fs.readFileSync(f), old[i], "a program that began with the old plan goes on"));
  assert.deepEqual(fs.readFileSync(path.join(at, "_versions", name)), before);
  held.say("go");
  const sum = (await must(run("sha1sum", [], { input: before }))).stdout.trim();
  assert.equal((await held.line()).trim(), sum);
  await held.ended;
});

test("looks from many sides while the branches move: always one plan, whole", async (t) => {
  const g = await scratch(t, "lance12", rows(0, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 1, "f") });
  let stop = false;
  const at = previewOf(g, "main", "f");
  const look = async (e) => {
    for (let n = 0; !stop; n++) {
      const seen = await stock[e].read(at);
      const ids = seen.rows.map((r) => r[0]),
        own = ids.filter((i) => i < 100),
        theirs = ids.filter((i) => i >= 100);
      assert.deepEqual(own, span(0, own.length - 1));
      assert.deepEqual(theirs, span(100, 99 + theirs.length));
      assert.equal(seen.count, ids.length);
    }
  };
  const looks = ENGINES.map(look);
  const moves = (async () => {
    for (let i = 0; i < 8; i++) {
      await g.op("f", "add", { rows: rows(101 + i, 1, "f") });
      await g.op("main", "add", { rows: rows(10 + i, 1) });
    }
    stop = true;
  })();
  await Promise.all([moves, ...looks]);
  const all = [...rows(0, 18), ...rows(100, 9, "f")];
  await shows(g, "main", "f", all);
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
});

// --- what it costs ---

const cache = async (g) => {
  const text = await textOf(path.join(g.m.mnt, ".stats"));
  const of = (name) => Number(new RegExp(`^lancefs_cache_${name}\\{cache="images"\\} (\\d+)$`, "m").exec(text)[1]);
  return { hits: of("hits_total"), misses: of("misses_total"), entries: of("entries"), bytes: of("bytes") };
};
const resident = (pid) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]);

test("C58 walks over everything make no preview", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  await must(sh('find "$1" -type f -exec cat {} + > /dev/null; grep -r r5 "$1" > /dev/null; tar cf /dev/null -C "$1" .; cp -r "$1/tree/main" "$2"; du -a "$1" > /dev/null; ls -alR "$1" > /dev/null', [g.m.mnt, path.join(g.w.dir, "copy")]));
  assert.ok(!fs.existsSync(path.join(g.w.dir, "copy", ".preview")));
  assert.deepEqual(await cache(g), { hits: 0, misses: 0, entries: 0, bytes: 0 });
});

test("many spellings of one merge: what is kept stays in its bounds", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12", { options: ["cache_mb=8"] }),
    at = previewOf(g, "main", "feature");
  const spell = (from, to) =>
    must(sh('for i in $(seq "$2" "$3"); do echo "$1,property.k=$i/_versions"; done | xargs ls > /dev/null', [at, String(from), String(to)], { limitMs: 240_000 }));
  const before = snapshot(g.root);
  await spell(1, 400);
  const first = resident(g.m.pid);
  await spell(401, 1600);
  const kept = await cache(g);
  assert.ok(kept.misses >= 1600, `each was another: ${kept.misses}`);
  assert.ok(kept.entries <= 256 && kept.bytes <= 1 << 20, JSON.stringify(kept));
  const grown = resident(g.m.pid) - first;
  assert.ok(grown < 4 * 1024, `1200 more previews took ${grown} kB`);
  assert.deepEqual(difference(before, snapshot(g.root)), []);
  await shows(g, "main", "feature", UNION);
});

test("a second look is answered from what is kept", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    at = previewOf(g, "main", "feature");
  const end = Date.now() + 20_000;
  for (let before = (await cache(g)).hits; ; ) {
    await must(run("ls", ["-R", at]));
    if ((await cache(g)).hits > before) break;
    assert.ok(Date.now() < end, "no look was answered from the cache");
  }
  const settled = await cache(g);
  for (const e of ENGINES) await stock[e].read(at);
  assert.equal((await cache(g)).misses, settled.misses);
});
