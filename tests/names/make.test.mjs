// SPDX-License-Identifier: Apache-2.0
// New branches: mkdir in tree/ and .branch. What stock Lance lists, checks out, reads and writes afterwards, on both engines.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load, tip, versions } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { checkManifest } from "../harness/invariants.mjs";
import { json, listed, refFile, refused, settled, works } from "../harness/names.mjs";
import { OVERLAP, changed, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkTip, checkView, control, merges, mounted, onEach } from "../harness/tip.mjs";
import { fails, scratch } from "../harness/verbs.mjs";
import { ENGINES } from "../harness/workspace.mjs";

// overlap_deletes
const MAIN = OVERLAP.main;
const FEATURE = OVERLAP.feature;

const branch = async (g, from, line) => {
  const r = await ctl(control(g, from, ".branch"), line);
  assert.equal(r.code, 0, `echo '${line}' > ${from}/.branch: ${r.answer.text}`);
  assert.equal(r.answer.result, "created");
  return r.answer;
};

// A manifest without what differs from branch to branch; an id of 0 may be written out or left out.
function plain(m) {
  const t = structuredClone(m.tree);
  for (const key of ["timestamp", "branch", "transaction_file", "transaction_section", "index_section"]) delete t[key];
  for (const b of t.base_paths ?? []) b.id ??= ["0"];
  return t;
}
const plainClone = (m) => ({ read: m.transaction.readVersion, clone: { ...m.transaction.tree.clone[0], branch_name: undefined } });

onEach("mkdir: a branch from the tip of main, as stock makes one", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await stock[engine].op(g.ds, "main", "fork", { name: "stock" });
  await works(g, "mkdir tree/new");
  await listed(g, { feature: ["main", 4 - 1], new: ["main", tip(g.ds)], stock: ["main", tip(g.ds)] });
  await checkTip(g, "new", MAIN);
  const ours = checkManifest(g.storage("new"), "new"),
    theirs = load(g.storage("stock"));
  assert.deepEqual(plain(ours), plain(theirs), "the first version");
  assert.deepEqual(plainClone(ours), plainClone(theirs), "its transaction");
  assert.deepEqual(Object.keys(ours.transaction.tree).sort(), Object.keys(theirs.transaction.tree).sort());
  const [a, b] = ["new", "stock"].map((name) => json(refFile(g, name)));
  assert.deepEqual({ ...a, identifier: 0, createAt: 0 }, { ...b, identifier: 0, createAt: 0 }, "the ref");
  assert.deepEqual(Object.keys(a), Object.keys(b));
  assert.ok(Math.abs(a.createAt - Date.now() / 1000) < 600, "createAt is now");
  assert.match(JSON.stringify(a.identifier), new RegExp(`^{"version_mapping":\\[\\[${tip(g.ds)},"[0-9a-f]{32}"\\]\\]}$`));
  for (const name of ["new", "stock"])
    assert.equal(fs.readFileSync(refFile(g, name), "utf8"), JSON.stringify(json(refFile(g, name)), null, 2), "its text");
  settled(g);
  for (const e of ENGINES) {
    const n = e === "lance10" ? 1 : 2;
    await stock[e].op(g.ds, "new", "add", { rows: rows(5000 * n, 2, "n") });
    await stock[e].op(g.ds, "new", "delete", { where: `id = ${n}` });
    await stock[e].op(g.ds, "new", "update", { where: `id = ${n + 100}`, values: { v: e } });
  }
  const then = [
    ...changed(changed(without(MAIN, 1, 2), 101, { v: "lance10" }), 102, { v: "lance12" }),
    ...rows(5000, 2, "n"),
    ...rows(10000, 2, "n"),
  ];
  await checkTip(g, "new", then);
  await stock[engine].op(g.ds, "main", "add", { rows: rows(7000, 1, "x") });
  await merges(g, "main", "new", "merged");
  await checkTip(g, "main", [...then, ...rows(7000, 1, "x")]);
});

onEach("mkdir -p: each directory is a branch from main; .branch makes just the one that it names", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    n = tip(g.ds);
  await works(g, "mkdir -p tree/exp/sub");
  await branch(g, "feature", "deep/er/name");
  await listed(g, {
    feature: ["main", 3],
    exp: ["main", n],
    "exp/sub": ["main", n],
    "deep/er/name": ["feature", tip(g.storage("feature"))],
  });
  assert.equal(await works(g, "ls tree/deep"), "er\n", "what only leads to a branch holds nothing else");
  for (const [name, expected] of [["exp", MAIN], ["exp/sub", MAIN], ["deep/er/name", FEATURE]])
    await checkTip(g, name, expected);
  await refused(g, "EEXIST", "mkdir tree/deep"); /* it leads there */
  for (const name of ["deep", "deep/er"]) await branch(g, "main", name); /* around the one that was there */
  for (const name of ["deep", "deep/er"]) await checkTip(g, name, MAIN);
  await checkTip(g, "deep/er/name", FEATURE);
  settled(g);
});

onEach(".branch: from this branch's tip, or from a version of it", async (t, engine) => {
  const g = await mounted(t, "chain", engine),
    feature = [...without(rows(0, 10), 1), ...rows(100, 2, "f")],
    sub = [...without(feature, 100), ...rows(200, 2, "s")],
    first = tip(g.storage("feature")) - 2; // feature's own commits: one append, one delete
  assert.equal((await branch(g, "feature", "tip")).parent, `feature@${first + 2}`);
  assert.equal((await branch(g, "feature", `older from=${first + 1}`)).parent, `feature@${first + 1}`);
  await branch(g, "feature", `first from=${first}`);
  await branch(g, "exp/sub", "exp/sub/twin");
  await branch(g, "main", "one from=1");
  const forks = { tip: ["feature", first + 2], older: ["feature", first + 1], first: ["feature", first] };
  for (const e of ENGINES) {
    const told = (await stock[e].op(g.ds, "main", "forks")).value;
    for (const [name, fork] of Object.entries(forks)) assert.deepEqual(told[name], fork, `${name}, by ${e}`);
    assert.deepEqual(told["exp/sub/twin"], ["exp/sub", tip(g.storage("exp/sub"))]);
  }
  assert.deepEqual(
    json(refFile(g, "exp/sub/twin")).identifier.version_mapping.slice(0, -1),
    json(refFile(g, "exp/sub")).identifier.version_mapping,
    "the path from main",
  );
  await checkTip(g, "tip", feature);
  await checkTip(g, "older", [...rows(0, 10), ...rows(100, 2, "f")]);
  await checkTip(g, "first", rows(0, 10));
  await checkTip(g, "exp/sub/twin", sub);
  await checkTip(g, "one", rows(0, 5));
  for (const [name, of] of [["tip", "feature"], ["exp/sub/twin", "exp/sub"]])
    assert.equal(checkManifest(g.storage(name), name).version, tip(g.storage(of)), "its parent's number");
  await stock[engine].op(g.ds, "exp/sub/twin", "delete", { where: "id IN (3, 101)" });
  await merges(g, "exp/sub", "exp/sub/twin", "fast-forward");
  await checkTip(g, "exp/sub", without(sub, 3, 101));
});

onEach("indexes come along, for a branch of a branch of a branch too, and stock goes on with them", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine),
    base = rows(0, 1000),
    feature = [...changed(base, span(0, 4), { n: -1 }), ...rows(5000, 10, "f")],
    child = [...feature, ...rows(6000, 3, "c")];
  await works(g, "mkdir tree/m");
  await branch(g, "feature", "f2");
  await branch(g, "f2", "f3");
  await branch(g, "feature/child", "grandchild"); /* stock's own child names a base that does not hold its indexes */
  for (const [name, expected, indexes] of [
    ["m", [...base, ...rows(2000, 10, "m")], ["id_idx"]],
    ["f2", feature, ["id_idx", "n_idx"]],
    ["f3", feature, ["id_idx", "n_idx"]],
    ["grandchild", child, ["id_idx", "n_idx"]],
  ]) {
    await checkTip(g, name, expected); /* filters through each index too */
    assert.deepEqual((await stock[engine].read(g.ds, name)).indexes.sort(), indexes, `indexes of ${name}`);
    for (const index of load(g.storage(name)).indices) assert.equal(index.base, undefined, "its files are the branch's own");
  }
  for (const e of ENGINES) {
    await stock[e].op(g.ds, "f3", "add", { rows: rows(e === "lance10" ? 8000 : 8100, 2, "z") });
    await stock[e].op(g.ds, "f3", "optimize");
  }
  await checkTip(g, "f3", [...feature, ...rows(8000, 2, "z"), ...rows(8100, 2, "z")]);
});

onEach("stable row ids, old manifest names, a bitmap of deletions", async (t, engine) => {
  const s = await mounted(t, "stable_row_ids", engine);
  await branch(s, "feature", "again");
  const again = [...without(changed(rows(0, 10), 2, { v: "ff" }), 9), ...rows(100, 3, "f")];
  await checkTip(s, "again", again);
  assert.equal(load(s.storage("again")).nextRowId, load(s.storage("feature")).nextRowId);
  for (const e of ENGINES) await stock[e].op(s.ds, "again", "update", { where: "id = 3", values: { v: e } });
  await checkTip(s, "again", changed(again, 3, { v: "lance12" }));

  const v = await mounted(t, "v1_names", engine);
  await works(v, "mkdir tree/b");
  await branch(v, "main", "old from=3");
  await checkTip(v, "b", rows(0, 12));
  await checkTip(v, "old", rows(0, 3));
  assert.equal(load(v.storage("old")).name.length, 29, "new manifest names, as stock gives them");
  await stock[engine].op(v.ds, "b", "add", { rows: rows(500, 1) });
  await checkTip(v, "b", [...rows(0, 12), ...rows(500, 1)]);

  const d = await mounted(t, "bitmap_deletes", engine),
    parent = await stock[engine].read(d.ds, "main");
  await works(d, "mkdir tree/b");
  for (const e of ENGINES) assert.deepEqual((await stock[e].read(d.ds, "b")).rows, parent.rows, `the parent's rows, by ${e}`);
});

onEach("a branch of what was merged: grafted files are reached where they are", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    union = OVERLAP.union;
  await merges(g, "main", "feature");
  await works(g, "mkdir tree/after");
  await stock[engine].op(g.ds, "main", "drop", { name: "feature" });
  await checkTip(g, "after", union);
  checkManifest(g.storage("after"), "after");
  await stock.lance10.op(g.ds, "after", "delete", { where: "id = 1001" });
  await stock.lance12.op(g.ds, "after", "add", { rows: rows(4000, 1) });
  await merges(g, "main", "after", "fast-forward");
  await checkTip(g, "main", [...without(union, 1001), ...rows(4000, 1)]);
});

onEach("stock's clean-up of the parent keeps what the branch needs", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 20), rows(20, 20));
  await works(g, "mkdir tree/b");
  for (const e of ENGINES) {
    await g.op("main", "delete", { where: "id < 25" }, e);
    await g.op("main", "add", { rows: rows(e === "lance10" ? 100 : 200, 5) }, e);
    await g.op("main", "clean", {}, e);
    await checkTip(g, "b", rows(0, 40));
  }
  await g.op("b", "add", { rows: rows(50, 1) });
  await merges(g, "main", "b");
  await checkTip(g, "main", [...rows(25, 15), ...rows(50, 1), ...rows(100, 5), ...rows(200, 5)]);
});

onEach("the fork point is kept: stock may clean it up, and the next merge still has its base", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 20)),
    fork = tip(g.ds);
  await works(g, "mkdir tree/b");
  await g.op("b", "update", { where: "id >= 0", values: { v: "b" } }); /* nothing of main's files is left in its tip */
  await g.op("b", "clean");
  await g.op("main", "add", { rows: rows(100, 5) });
  await g.op("main", "clean");
  assert.ok(!versions(g.ds).includes(fork), "the fork point is gone from main");
  await merges(g, "main", "b");
  await checkTip(g, "main", [...changed(rows(0, 20), span(0, 19), { v: "b" }), ...rows(100, 5)]);
});

onEach("C63 a branch of a shallow clone: its own root and the other data set's, each by its string", async (t, engine) => {
  const g = await mounted(t, "clones", engine, { generated: { name: "b" } });
  await works(g, "mkdir tree/x");
  await branch(g, "feature", "y");
  const b = [...without(rows(0, 300), 7), ...rows(1000, 2, "b")];
  await checkTip(g, "x", b);
  await checkTip(g, "y", [...without(b, 8), ...rows(2000, 2, "f")]);
  assert.deepEqual(
    load(g.storage("x")).bases.map((x) => x.path).sort(),
    [path.join(g.root, "a.lance"), g.ds].sort(),
    "no other base path",
  );
  await merges(g, "main", "y", "fast-forward");
  await checkTip(g, "main", [...without(b, 8), ...rows(2000, 2, "f")]);
});

// --- what is refused

const BAD = ["bad name", "a..b", ".", "x.lock", "x%2Fy", "_refs", "tree", "data", "_versions", "_lancefs", "plus+", "é!", "n".repeat(250)];
test("a bad name gets EINVAL before anything is made", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  for (const name of BAD.filter((n) => n !== ".")) await refused(g, "EINVAL", 'mkdir "tree/$1"', [name]);
  await refused(g, "EINVAL", 'mkdir "tree/feature/$1"', ["_lancefs"]);
  await refused(g, "EEXIST", 'mkdir "tree/feature/$1"', ["_refs"]); // where stock Lance keeps a view's tags
  await refused(g, "EEXIST", 'mkdir "tree/feature/$1"', [".conflicts"]); // it is there, though not listed
  for (const line of ["main", "/x", "x/", "a//b", "x/data", "tree/x", "../up", "x/../y", '"bad name"', "a b", "x from=0x1", '""'])
    await fails(g, ".branch", "main", line, "EINVAL");
  for (const line of ["x dry-run", "x expect=6", "x mode=copy"]) await fails(g, ".branch", "main", line, "EINVAL");
  assert.match((await fails(g, ".branch", "main", "x/data", "EINVAL")).error, /'data'.*meaning/);
  await refused(g, "ENAMETOOLONG", 'mkdir "tree/$1"', ["n".repeat(256)]);
});

test("a name that is taken, a version that is not there", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  await refused(g, "EEXIST", "mkdir tree/main");
  await refused(g, "EEXIST", "mkdir tree/feature");
  await refused(g, "EEXIST", "mkdir tree/feature/data");
  await fails(g, ".branch", "main", "feature", "EEXIST");
  for (const line of ["x from=99", "x from=0"]) await fails(g, ".branch", "main", line, "ENOENT");
  await refused(g, ["EPERM", "EROFS"], "mkdir tags/x");
  await refused(g, ["EPERM", "EROFS"], "mkdir tables/x");
  await fails(g, ".merge", "main", "feature from=3", "EINVAL");
});

test("names that are awkward but right", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  for (const name of ["ü", "-rf", "HEAD", "0", ".hidden", "feature/x", "main/x", "Feature", "日本", "a.b_c-d"]) {
    await works(g, 'mkdir -- "tree/$1"', name);
    await checkTip(g, name, MAIN, { view: /^[\w./]+$/.test(name) });
  }
  await checkView(g, "feature", FEATURE);
});

test("C44 a directory that no ref names is in the way, and says so; others go on", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  await works(g, "mkdir tree/left tree/other");
  fs.unlinkSync(refFile(g, "left"));
  assert.equal(await works(g, "ls tree"), "feature\nmain\nother\n");
  await refused(g, "EEXIST", "mkdir tree/left", [], /tree\/left holds versions that no branch names/);
  await checkTip(g, "other", MAIN);
  fs.rmSync(g.storage("other"), { recursive: true });
  await works(g, "! ls tree/other 2>/dev/null"); /* a ref without a directory */
  await refused(g, "EEXIST", "mkdir tree/other", [], /there is a branch other already/);
  await works(g, "mkdir tree/third");
  await checkTip(g, "third", MAIN);
});

test("-o ro: EROFS for every change of names", async (t) => {
  const g = await mounted(t, "tags", "lance12", { options: ["ro"] });
  for (const script of [
    "mkdir tree/x",
    "rmdir tree/feature",
    "mv tree/feature tree/x",
    "ln -s ../tree/main/.versions/1 tags/x",
    "rm tags/v1",
    "mv tags/v1 tags/v2",
    "echo x > tree/main/.branch",
    "echo x > tree/main/.tag",
  ])
    await refused(g, "EROFS", script);
});

test("many at once: each name is made once, and each is whole", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  const made = await works(
    g,
    'for i in 1 2 3 4 5 6; do for n in a b; do { mkdir "tree/$n" 2>/dev/null && echo "$n"; } & mkdir "tree/own$n$i" & done; done; wait',
  );
  assert.deepEqual(made.trim().split("\n").sort(), ["a", "b"]);
  for (const name of ["a", "b", "owna1", "ownb6"]) await checkStorage(g, name, MAIN);
  assert.equal((await works(g, "ls tree")).trim().split("\n").length, 2 + 2 + 12);
  settled(g);
});
