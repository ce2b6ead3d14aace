// SPDX-License-Identifier: Apache-2.0
// mv in tree/: a branch is called otherwise, for stock too; whatever named it or its files says the new name.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load, manifests, tip } from "../interop/manifest.mjs";
import { checkManifest } from "../harness/invariants.mjs";
import { json, listed, refFile, refused, settled, tagFile, works } from "../harness/names.mjs";
import { OVERLAP, changed, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkTip, checkView, merges, mounted, onEach } from "../harness/tip.mjs";
import { scratch } from "../harness/verbs.mjs";
import { ENGINES } from "../harness/workspace.mjs";

// No manifest of the data set names the branch any more, in its branch field or in a base path.
function forgotten(g, name) {
  for (const entry of fs.readdirSync(g.ds, { recursive: true })) {
    if (path.basename(entry) !== "_versions") continue;
    const dir = path.join(g.ds, path.dirname(entry));
    for (const { version } of manifests(dir)) {
      const m = load(dir, version);
      assert.notEqual(m.branch, name, `${dir}@${version}`);
      for (const b of m.bases) assert.ok(!`${b.path}/`.includes(`/tree/${name}/`), `${dir}@${version}: ${b.path}`);
    }
  }
}
const sizes = (g) => {
  for (const file of fs.readdirSync(path.join(g.ds, "_refs/branches"))) {
    const ref = json(path.join(g.ds, "_refs/branches", file)),
      dir = g.storage(ref.parentBranch ?? "main");
    if (manifests(dir).some((m) => m.version === ref.parentVersion))
      assert.equal(ref.manifestSize, fs.statSync(load(dir, ref.parentVersion).file).size, `manifestSize in ${file}`);
  }
};

onEach("mv: every branch, tag and file reads as before, by the new name; children and their children", async (t, engine) => {
  const g = await mounted(t, "chain", engine),
    feature = [...without(rows(0, 10), 1), ...rows(100, 2, "f")],
    sub = [...without(feature, 100), ...rows(200, 2, "s")],
    deep = [...without(sub, 6), ...rows(300, 2, "d")],
    fork = (name) => json(refFile(g, name)).parentVersion;
  await works(g, "echo t1 > tree/feature/.tag; echo 't2 from=3' > tree/feature/.tag");
  const before = { ids: json(refFile(g, "feature")).identifier, tag: json(tagFile(g, "t1")) };
  await works(g, "mv tree/feature tree/renamed");
  await listed(
    g,
    {
      renamed: ["main", fork("renamed")],
      "exp/sub": ["renamed", fork("exp/sub")],
      "exp/sub/deep": ["exp/sub", fork("exp/sub/deep")],
      old: ["main", 1],
      idle: ["renamed", fork("idle")],
    },
    { t1: tip(g.storage("renamed")), t2: 3 },
  );
  settled(g);
  forgotten(g, "feature");
  sizes(g);
  assert.equal(fs.existsSync(g.storage("feature")), false);
  assert.deepEqual(json(refFile(g, "renamed")).identifier, before.ids, "it is the same line");
  const { branch, manifestSize, ...tag } = json(tagFile(g, "t1")),
    { branch: _b, manifestSize: _s, ...was } = before.tag;
  assert.deepEqual([branch, tag], ["renamed", was], "the tag");
  assert.equal(manifestSize, fs.statSync(load(g.storage("renamed")).file).size);
  assert.equal(await works(g, "ls tree"), "exp\nidle\nmain\nold\nrenamed\n");
  for (const [name, expected] of [["renamed", feature], ["exp/sub", sub], ["exp/sub/deep", deep], ["idle", feature]]) {
    await checkTip(g, name, expected);
    checkManifest(g.storage(name), name);
  }
  for (const e of ENGINES) {
    const at = e === "lance10" ? 500 : 600;
    for (const name of ["renamed", "exp/sub/deep"]) await stock[e].op(g.ds, name, "add", { rows: rows(at, 1, "x") });
    await stock[e].op(g.ds, "renamed", "delete", { where: `id = ${at === 500 ? 2 : 3}` });
  }
  const x = [...rows(500, 1, "x"), ...rows(600, 1, "x")];
  await checkTip(g, "renamed", [...without(feature, 2, 3), ...x]);
  await checkTip(g, "exp/sub/deep", [...deep, ...x]);
  for (const e of ENGINES) await stock[e].op(g.ds, "renamed", "clean").catch((err) => assert.match(err.message, /tag/i)); // L12 will not clean around a tag
  await checkTip(g, "exp/sub", sub); /* stock still protects the parent of a child, by the new string */
  await works(g, "mv tree/exp/sub tree/sub"); /* and what lies below it */
  await checkTip(g, "sub/deep", [...deep, ...x]);
  await checkTip(g, "sub", sub);
  settled(g);
});

onEach("after merges: grafts, kept bases and what is merged next know the line, not the name", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    union = OVERLAP.union;
  await merges(g, "main", "feature");
  await works(g, "mv tree/feature tree/a-much-longer-name");
  await merges(g, "main", "a-much-longer-name", "up-to-date");
  await checkTip(g, "main", union);
  await stock[engine].op(g.ds, "a-much-longer-name", "add", { rows: rows(1100, 2, "f") });
  await stock[engine].op(g.ds, "main", "delete", { where: "id = 1000" });
  await merges(g, "main", "a-much-longer-name");
  await checkTip(g, "main", [...without(union, 1000), ...rows(1100, 2, "f")]);
  await merges(g, "a-much-longer-name", "main", "fast-forward");
  await works(g, "mv tree/a-much-longer-name tree/f"); /* its newest version was merged under the longer name, and kept */
  await merges(g, "main", "f", ["up-to-date", "fast-forward", "empty-merge"]);
  for (const name of ["f", "main"]) await checkTip(g, name, [...without(union, 1000), ...rows(1100, 2, "f")]);
  forgotten(g, "a-much-longer-name");
  settled(g);
});

onEach("a directory takes along what lies in it; there and back", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10));
  for (const [name, from] of [["a", "main"], ["a/b", "a"], ["a/c/d", "a/b"], ["z", "main"]]) {
    await g.op("main", "fork", { name, from });
    await g.op(name, "add", { rows: rows(100 * name.length, 1) });
  }
  const expected = { "": [100], "/b": [100, 300], "/c/d": [100, 300, 500] };
  const check = async (under) => {
    for (const [rest, ids] of Object.entries(expected))
      await checkTip(g, `${under}${rest}`, [...rows(0, 10), ...ids.flatMap((id) => rows(id, 1))]);
    settled(g);
  };
  await works(g, "mv tree/a tree/new"); /* all three */
  await check("new");
  await works(g, "mv tree/new tree/z"); /* into it, as mv does */
  await check("z/new");
  await works(g, "mv tree/z/new tree/a");
  await check("a");
  await works(g, "mv tree/a/c tree/q"); /* it only led to one */
  await checkTip(g, "q/d", [...rows(0, 10), ...rows(100, 1), ...rows(300, 1), ...rows(500, 1)]);
  await listed(g, { a: ["main", 1], "a/b": ["a", 2], "q/d": ["a/b", 3], z: ["main", 1] });
  await checkTip(g, "z", [...rows(0, 10), ...rows(100, 1)]);
});

onEach("indexes and stable row ids", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine),
    feature = [...changed(rows(0, 1000), span(0, 4), { n: -1 }), ...rows(5000, 10, "f")];
  await works(g, "mv tree/feature tree/f && echo mine > tree/f/.branch && mv tree/f tree/deep");
  for (const name of ["deep", "mine"]) await checkTip(g, name, feature);
  const s = await mounted(t, "stable_row_ids", engine);
  await works(s, "mv tree/feature tree/f");
  await stock[engine].op(s.ds, "f", "update", { where: "id = 3", values: { v: "x" } });
  await checkTip(s, "f", [...without(changed(changed(rows(0, 10), 2, { v: "ff" }), 3, { v: "x" }), 9), ...rows(100, 3, "f")]);
});

test("what is refused changes nothing", async (t) => {
  const g = await mounted(t, "chain", "lance12");
  await refused(g, "EPERM", "mv tree/main tree/x", [], /main keeps its name/);
  await refused(g, "EEXIST", "mv -T tree/old tree/idle");
  await refused(g, ["EEXIST", "ENOTEMPTY"], "mv -T tree/old tree/exp");
  for (const name of ["bad name", "a..b", "x.lock", "tree", "_refs"]) await refused(g, "EINVAL", 'mv -T tree/old "tree/$1"', [name]);
  await refused(g, "ENOENT", "mv tree/none tree/x");
  await refused(g, ["EPERM", "EROFS"], "mv tree/old tags/x");
  await refused(g, ["EPERM", "EROFS"], "mv tree/old/data tree/x");
  await refused(g, ["EPERM", "EROFS"], "mv tables/old.lance tables/x.lance");
  fs.mkdirSync(g.storage("way"));
  fs.writeFileSync(path.join(g.storage("way"), "x"), "");
  await refused(g, ["EEXIST", undefined], "mv tree/old tree/way", [], /tree\/way is in the way/); // mv has words of its own
  fs.writeFileSync(path.join(g.storage("old"), "_versions/5.manifest"), "old is not a manifest");
  await refused(g, "EIO", "mv tree/old tree/x");
});

test("what is open goes on; with entry_timeout the old name is gone at once", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12", { options: ["entry_timeout=600", "attr_timeout=600"] });
  const FEATURE = OVERLAP.feature;
  await checkView(g, "feature", FEATURE);
  assert.equal(
    await works(
      g,
      'f=$(ls -d tree/feature/data/*.lance | head -1); sum=$(md5sum < "$f"); exec 7< "$f"; mv tree/feature tree/g; [ "$(md5sum <&7)" = "$sum" ] && echo same; ls tree tables; ls tree/feature 2>/dev/null; echo $?',
    ),
    "same\ntables:\ng.lance\nmain.lance\n\ntree:\ng\nmain\n2\n",
  );
  await checkTip(g, "g", FEATURE);
  await works(g, "mkdir tree/feature && rmdir tree/g");
  assert.equal(await works(g, "ls tree; ls tree/g 2>/dev/null; echo $?"), "feature\nmain\n2\n");
  await checkStorage(g, "feature", OVERLAP.main);
});
