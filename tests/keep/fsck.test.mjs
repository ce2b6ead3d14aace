// SPDX-License-Identifier: Apache-2.0
// fsck.lancefs and MNT/.fsck: data sets that stock Lance or a merge wrote are clean; each kind of damage is found and
// named; what is repaired reads again.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { edit, remade } from "../interop/wire.mjs";
import { gcFails } from "../harness/keep.mjs";
import { mount } from "../harness/mount.mjs";
import { run } from "../harness/proc.mjs";
import { rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, merges, mounted, onEach } from "../harness/tip.mjs";
import { difference, generate, LANCEFS, snapshot, workspace } from "../harness/workspace.mjs";

const FSCK = path.join(path.dirname(LANCEFS), "fsck.lancefs");
const fsck = async (...args) => {
  const r = await run(FSCK, args);
  return { ...r, errors: r.stdout.split("\n").filter((l) => l.startsWith("error: ")) };
};
async function clean(ds, where) {
  const before = snapshot(ds),
    r = await fsck(ds);
  assert.deepEqual([r.code, r.errors], [0, []], `${where}: ${r.stdout}${r.stderr}`);
  assert.match(r.stdout, /^result: clean$/m);
  assert.deepEqual(difference(before, snapshot(ds)), [], "a check changes nothing");
}
// Every data set below a directory.
function dataSets(dir) {
  return fs.readdirSync(dir, { withFileTypes: true }).flatMap((e) => {
    if (!e.isDirectory()) return [];
    const p = path.join(dir, e.name);
    if (!e.name.endsWith(".lance")) return dataSets(p);
    // stock leaves stray folders for names with a percent in them, and puts the branches of a folder with a question mark
    // elsewhere: into a/tree/feature?b
    return fs.existsSync(path.join(p, "_versions")) && !dir.includes("?") ? [p] : [];
  });
}

const CLEAN = [
  "add_columns", "bitmap_deletes", "chain", "cleaned", "clones", "compaction", "delete_vs_update", "drop_vs_edit",
  "field_meta", "index_on_branch", "nested_types", "net_zero", "overlap_deletes", "overwrite_restore", "paths",
  "siblings", "stable_row_ids", "v1_names", "whole_fragments",
];
for (const generator of CLEAN)
  onEach(`${generator} is clean`, async (t, engine) => {
    const w = workspace(t),
      g = await generate(w, generator, engine),
      all = dataSets(g.root);
    assert.ok(all.length > 0);
    for (const ds of all) await clean(ds, path.relative(g.root, ds));
  });

for (const mode of ["graft", "link", "copy"])
  onEach(`clean after merges by ${mode} in both directions, stock's commits and clean-up`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine),
      op = (...a) => stock[engine].op(g.ds, ...a);
    await merges(g, "main", `feature mode=${mode}`);
    await clean(g.ds, "after a merge");
    await op("main", "delete", { where: "id % 50 = 1" });
    await merges(g, "feature", `main mode=${mode}`, ["merged", "fast-forward"]);
    for (const branch of ["main", "feature"]) await op(branch, "optimize").then(() => op(branch, "clean"));
    await clean(g.ds, "after clean-up");
    const shown = await run("cat", [path.join(g.m.mnt, ".fsck")]);
    assert.match(shown.stdout, /^result: clean$/m);
    await op("main", "drop", { name: "feature" });
    await clean(g.ds, "without the source");
    await g.m.unmount();
  });

onEach("hostile: damaged deletion files are named", async (t, engine) => {
  const w = workspace(t),
    { root } = await generate(w, "hostile", engine);
  await clean(path.join(root, "good/t.lance"), "good");
  for (const [kind, what] of [
    ["deletion_gone", /tree\/feature\/_deletions\/0-\S+ is gone/],
    ["deletion_half", /tree\/feature\/_deletions\/0-\S+ .*which rows live/],
    ["deletion_junk", /tree\/feature\/_deletions\/0-\S+ .*which rows live/],
    ["deleted_more_than_rows", /999 of the 10 rows of fragment 0/],
  ]) {
    const r = await fsck("-n", path.join(root, kind, "t.lance"));
    assert.equal(r.code, 4, kind);
    assert.ok(r.errors.some((l) => what.test(l)), r.stdout);
  }
});

onEach("moved and copied data sets: found, relocated, and stock reads and writes every branch again", async (t, engine) => {
  const w = workspace(t),
    { root } = await generate(w, "moved", engine);
  for (const name of ["here", "copy"]) {
    const ds = path.join(root, name, "t.lance"),
      before = snapshot(ds),
      original = snapshot(path.join(root, "orig"));
    const r = await fsck(ds);
    assert.deepEqual([r.code, r.errors.length], [4, 2], r.stdout);
    assert.match(r.errors[0], /does not lead to this data set any more/);
    assert.equal((await fsck("-y", ds)).code, 4, "only when it is asked for");
    assert.deepEqual(difference(before, snapshot(ds)), []);
    const fixed = await fsck("-y", "--relocate", ds);
    assert.equal(fixed.code, 1, fixed.stdout);
    await clean(ds, "relocated");
    const g = { ds },
      feature = [...without(rows(0, 10), 4), ...rows(100, 2, "f")];
    await checkStorage(g, "main", rows(0, 10));
    await checkStorage(g, "feature", feature);
    await checkStorage(g, "child", [...feature, ...rows(200, 1, "c")]);
    await stock[engine].op(ds, "child", "delete", { where: "id = 200" });
    await stock[engine].op(ds, "feature", "add", { rows: rows(300, 1) });
    await stock[engine].op(ds, "feature", "optimize");
    await checkStorage(g, "child", feature);
    await checkStorage(g, "feature", [...feature, ...rows(300, 1)]);
    assert.deepEqual(difference(original, snapshot(path.join(root, "orig"))), [], "the original is not touched");
  }
});

// --- one damage at a time ---

const newest = (dir) => path.join(dir, "_versions", fs.readdirSync(path.join(dir, "_versions")).filter((f) => f.endsWith(".manifest")).sort()[0]);
const first = (dir) => path.join(dir, fs.readdirSync(dir).sort()[0]);
const remake = (file, fn) => fs.writeFileSync(file, remade(fs.readFileSync(file), fn));
const feature = (g) => g.storage("feature");
const lineOf = (g) => {
  const dir = path.join(g.ds, "_lancefs/lines");
  return path.join(dir, fs.readdirSync(dir).find((n) => n !== "main"));
};
const DAMAGES = {
  "a manifest that was cut": [(g) => fs.truncateSync(newest(feature(g)), 40), /tree\/feature\/_versions\/\S+: this version cannot be read/],
  "an empty manifest": [(g) => fs.truncateSync(newest(g.ds), 0), /_versions\/\S+: this version cannot be read/],
  "a manifest under another number": [
    (g) => fs.copyFileSync(newest(g.ds), path.join(g.ds, "_versions", `${(1n << 64n) - 1n - 50n}.manifest`)),
    /says that it is version 7/,
  ],
  "both naming schemes": [(g) => fs.copyFileSync(newest(g.ds), path.join(g.ds, "_versions/7.manifest")), /both naming schemes/],
  "a branch's manifest that says main": [(g) => remake(newest(feature(g)), (m) => m.filter((x) => x[0] !== 20)), /says that it is of branch main/],
  "a data file that is gone": [(g) => fs.rmSync(first(path.join(g.ds, "data"))), /data\/\S+ is gone/],
  "a data file that was cut": [(g) => fs.truncateSync(first(path.join(g.ds, "data")), 100), /data\/\S+ has 100 bytes/],
  "a data file that was overwritten": [
    (g) => {
      const file = first(path.join(g.ds, "data"));
      fs.writeFileSync(file, Buffer.alloc(fs.statSync(file).size));
    },
    /is no Lance file/,
  ],
  "a grafted file that is gone": [(g) => fs.rmSync(first(path.join(lineOf(g), "data"))), /_lancefs\/lines\/\S+ is gone/],
  "a kept base without its deletion file": [
    (g) => {
      fs.rmSync(path.join(lineOf(g), "_deletions"), { recursive: true });
      fs.rmSync(path.join(feature(g), "_deletions"), { recursive: true });
    },
    /of this kept base is gone/,
  ],
  "a line of which nothing is known": [
    (g) => {
      fs.rmSync(path.join(g.ds, "_refs/branches/feature.json"));
      fs.rmSync(feature(g), { recursive: true });
      fs.rmSync(lineOf(g), { recursive: true });
    },
    /of which nothing was kept/,
  ],
  "a fragment id twice": [(g) => remake(newest(g.ds), (m) => [...m, m.find((x) => x[0] === 2)]), /two fragments have the id 0/],
  "a max_fragment_id that is too low": [(g) => remake(newest(g.ds), (m) => edit(m, 11, () => 0n)), /max_fragment_id is 0/],
  "a base id without base path": [(g) => remake(newest(feature(g)), (m) => m.filter((x) => x[0] !== 18)), /names base path 0, which it does not have/],
  "a tag on a version that is gone": [
    (g) => {
      fs.mkdirSync(path.join(g.ds, "_refs/tags"), { recursive: true });
      fs.writeFileSync(path.join(g.ds, "_refs/tags/old.json"), '{"branch":null,"version":99,"manifestSize":1}');
    },
    /tag old names version 99 of main, which is gone/,
  ],
  "a tag on a branch that is gone (C57)": [
    (g) => {
      fs.mkdirSync(path.join(g.ds, "_refs/tags"), { recursive: true });
      fs.writeFileSync(path.join(g.ds, "_refs/tags/lost.json"), '{"branch":"nobody","version":1,"manifestSize":1}');
    },
    /tag lost names branch nobody, which is not there/,
  ],
  "half a ref (C45)": [(g) => fs.truncateSync(path.join(g.ds, "_refs/branches/feature.json"), 20), /_refs\/branches\/feature\.json cannot be used/],
  "a ref without directory (C44)": [(g) => fs.renameSync(feature(g), path.join(g.ds, "aside")), /branch feature has a ref but no versions/],
  "a directory without ref (C44)": [
    (g) => fs.cpSync(feature(g), path.join(g.ds, "tree/left"), { recursive: true }),
    /tree\/left holds versions, but no ref names it/,
  ],
  "index files that are gone": [
    async (g) => {
      await stock[g.engine].op(g.ds, "main", "index", { column: "id" });
      fs.rmSync(path.join(g.ds, "_indices"), { recursive: true });
    },
    /the files of index id_idx \(\S+\) are gone/,
  ],
};
for (const [name, [damage, what]] of Object.entries(DAMAGES))
  onEach(`found: ${name}`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine);
    await merges(g, "main", "feature");
    await damage(g);
    const before = snapshot(g.ds),
      r = await fsck(g.ds);
    assert.equal(r.code, 4, `${r.stdout}${r.stderr}`);
    assert.ok(r.errors.some((l) => what.test(l)), r.stdout);
    const shown = await run("cat", [path.join(g.m.mnt, ".fsck")]);
    assert.ok(shown.stdout.split("\n").some((l) => what.test(l)), shown.stdout);
    assert.deepEqual(difference(before, snapshot(g.ds)), []);
    assert.equal((await fsck("-y", g.ds)).code & 4, 4, "nobody guesses");
    assert.deepEqual(difference(before, snapshot(g.ds)), []);
  });

test("two rows of one stable row id, and next_row_id too low", async (t) => {
  const w = workspace(t),
    g = await generate(w, "stable_row_ids", "lance12");
  remake(newest(g.ds), (m) => edit(m, 14, () => 1n));
  assert.match((await fsck(g.ds)).stdout, /next_row_id is 1, but there is a row/);
});

test("half-made files are counted, named with -v, and removed with -y; what another program makes stays", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    good = snapshot(g.ds);
  for (const name of ["_versions/.tmp-lancefs-00", "tree/feature/data/.tmp-lancefs-11", "_versions/.tmpAbCdEf"])
    fs.writeFileSync(path.join(g.ds, name), "x");
  const r = await fsck("-v", g.ds);
  assert.equal(r.code, 0, r.stdout);
  assert.match(r.stdout, /^half-made: 3 files$/m);
  assert.match(r.stdout, /^half-made: _versions\/\.tmpAbCdEf$/m);
  assert.equal((await fsck("-y", g.ds)).code, 1);
  assert.deepEqual(difference(good, snapshot(g.ds)), ["new: _versions/.tmpAbCdEf"]);
  assert.equal((await fsck("-y", g.ds)).code, 0);
});

onEach("a renaming that stopped half-way: found, .gc waits for it, -y takes it back", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    record = path.join(g.ds, "_lancefs/names/11111111-2222-3333-4444-555555555555/record");
  await merges(g, "main", "feature");
  fs.mkdirSync(path.dirname(record), { recursive: true });
  fs.writeFileSync(record, "rename feature moved\n");
  const before = snapshot(g.ds),
    r = await fsck(g.ds);
  assert.equal(r.code, 4);
  assert.match(r.stdout, /^error: _lancefs\/names\/1111\S+ a change of branch names stopped half-way/m);
  assert.equal((await gcFails(g, "dry-run older-than=0s", "EBUSY")).result, "error");
  assert.deepEqual(difference(before, snapshot(g.ds)), []);
  assert.equal((await fsck("-y", g.ds)).code, 1);
  await clean(g.ds, "repaired");
  const { value } = await stock[engine].op(g.ds, "main", "branches");
  assert.deepEqual(value, ["feature"]); // the directory had not moved yet
  await checkStorage(g, "feature", [...without(rows(0, 300), span(10, 19), span(150, 159)), ...rows(1000, 3, "f")]);
  await g.m.unmount();
});

test("exit status, words", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12");
  for (const [args, code] of [
    [[], 16],
    [[g.ds, g.ds], 16],
    [["-n", "-y", g.ds], 16],
    [["--relocate", g.ds], 16],
    [["-q", g.ds], 16],
    [[g.root], 8],
    [[path.join(g.root, "nothing.lance")], 8],
    [["-h"], 0],
    [["-V"], 0],
    [["-a", g.ds], 0],
  ])
    assert.equal((await fsck(...args)).code, code, args.join(" "));
});

test("a mount goes on while the data set is checked", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12");
  g.m = await mount(w, g.ds);
  const checks = Promise.all([fsck(g.ds), fsck(g.ds), run("cat", [path.join(g.m.mnt, ".fsck")])]);
  await merges(g, "main", "feature");
  for (const r of await checks) assert.match(r.stdout, /^result: clean$/m);
  await g.m.unmount();
});
