// SPDX-License-Identifier: Apache-2.0
// rmdir in tree/: a branch goes, nothing that somebody needs goes with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import { json, listed, refFile, refused, settled, works } from "../harness/names.mjs";
import { must, run } from "../harness/proc.mjs";
import { OVERLAP, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkTip, checkView, merges, mounted, onEach } from "../harness/tip.mjs";
import { scratch } from "../harness/verbs.mjs";
import { snapshot } from "../harness/workspace.mjs";

onEach("rmdir: the branch is gone for everybody; one of its name can be made anew and is shown as it is", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10));
  await works(g, "mkdir tree/b");
  await g.op("b", "add", { rows: rows(100, 3) });
  await g.op("main", "add", { rows: rows(10, 1) });
  await checkTip(g, "b", [...rows(0, 10), ...rows(100, 3)]);
  await works(g, "rmdir tree/b");
  await listed(g, {});
  assert.equal(fs.existsSync(g.storage("b")), false);
  assert.equal(await works(g, "ls tree tables"), "tables:\nmain.lance\n\ntree:\nmain\n");
  await refused(g, "ENOENT", "rmdir tree/b");
  settled(g);
  await works(g, "mkdir tree/b"); /* the same number as the old one's tip, other rows */
  await checkTip(g, "b", rows(0, 11));
  await works(g, "rmdir tree/b");
  await g.op("main", "fork", { name: "b" });
  await g.op("b", "delete", { where: "id = 3" });
  await checkTip(g, "b", without(rows(0, 11), 3));
});

onEach("EBUSY: a child branch, a tag; not when they are gone", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  await refused(g, "EBUSY", "rmdir tree/feature", [], /branch (exp\/sub|idle) was made from version \d+ of feature/);
  await refused(g, "EBUSY", "rmdir tree/exp/sub", [], /branch exp\/sub\/deep was made from version \d+ of exp\/sub/);
  await refused(g, "EPERM", "rmdir tree/main", [], /main cannot be deleted/);
  await works(g, "echo mine > tree/idle/.branch"); /* a child that lancefs made */
  await refused(g, "EBUSY", "rmdir tree/idle", [], /branch mine was made from/);
  await works(g, "echo t1 > tree/mine/.tag");
  await refused(g, "EBUSY", "rmdir tree/mine", [], /the tag t1 names version \d+ of mine/);
  await works(g, "rm tags/t1 && rmdir tree/mine tree/idle tree/exp/sub/deep tree/exp/sub");
  assert.equal(await works(g, "ls tree"), "feature\nmain\nold\n", "tree/exp led to them, and is gone too");
  await works(g, "rmdir tree/feature");
  await checkTip(g, "old", [...rows(0, 5), ...rows(400, 1, "o")]);
  await checkTip(g, "main", rows(0, 10).concat(rows(10, 1, "m")));
  settled(g);
});

onEach("EBUSY: a manifest that stock's own relation does not know of, but which names the branch's files", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10));
  await g.op("main", "fork", { name: "a" });
  await g.op("a", "add", { rows: rows(100, 1) });
  await g.op("main", "fork", { name: "b", from: "a" });
  const ref = json(refFile(g, "b"));
  ref.identifier.version_mapping = [[2, "0".repeat(32)]];
  ref.parentBranch = null;
  fs.writeFileSync(refFile(g, "b"), JSON.stringify(ref));
  await refused(g, "EBUSY", "rmdir tree/a", [], /1 versions in tree\/b use files of a/);
  await checkTip(g, "b", [...rows(0, 10), ...rows(100, 1)]);
});

onEach("what was merged stays: the files that others grafted, the base of the next merge", async (t, engine) => {
  const union = OVERLAP.union;
  const g = await mounted(t, "overlap_deletes", engine);
  await merges(g, "main", "feature");
  await works(g, "mkdir tree/other && rmdir tree/feature");
  await checkTip(g, "main", union);
  await checkTip(g, "other", union);
  await stock.lance10.op(g.ds, "main", "add", { rows: rows(3000, 1) });
  await stock.lance12.op(g.ds, "other", "delete", { where: "id = 1001" });
  await merges(g, "main", "other");
  await checkTip(g, "main", [...without(union, 1001), ...rows(3000, 1)]);
});

onEach("branches whose names lie below it stay where they are", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10));
  for (const name of ["a", "a/b", "a/c/d"]) {
    await g.op("main", "fork", { name });
    await g.op(name, "add", { rows: rows(100 * name.length, 1) });
  }
  await works(g, "rmdir tree/a");
  await listed(g, { "a/b": ["main", 1], "a/c/d": ["main", 1] });
  assert.equal(await works(g, "ls -A tree/a"), "b\nc\n");
  assert.deepEqual(fs.readdirSync(g.storage("a")).sort(), ["b", "c"], "nothing of its own is left");
  await checkTip(g, "a/b", [...rows(0, 10), ...rows(300, 1)]);
  await checkTip(g, "a/c/d", [...rows(0, 10), ...rows(500, 1)]);
  await refused(g, "ENOTEMPTY", "rmdir tree/a/c");
  await works(g, "rmdir tree/a/c/d");
  assert.deepEqual(fs.readdirSync(g.storage("a")), ["b"]);
  await works(g, "rmdir tree/a/b");
  assert.equal(await works(g, "ls tree"), "main\n");
});

onEach("C57 a tag keeps its branch, for either engine, and keeps what it says", async (t, engine) => {
  const g = await mounted(t, "tags", engine),
    before = ["v1", "feat-v", "feature"].map((name) => fs.readFileSync(`${g.ds}/_refs/tags/${name}.json`, "utf8"));
  await refused(g, "EBUSY", "rmdir tree/feature", [], /the tag feat-v names version 4 of feature/);
  await merges(g, "main", "feature", "fast-forward"); /* the branch, not the tag of its name */
  assert.deepEqual(["v1", "feat-v", "feature"].map((name) => fs.readFileSync(`${g.ds}/_refs/tags/${name}.json`, "utf8")), before);
  await listed(g, undefined, { v1: 1, "feat-v": 4, feature: 2 });
  await works(g, "rm tags/feat-v && rmdir tree/feature");
  await checkTip(g, "main", [...rows(0, 11), ...rows(100, 2, "f")]);
});

test("a ref that cannot be read: nobody knows what it stands on", async (t) => {
  const g = await mounted(t, "chain", "lance12");
  await works(g, "mkdir tree/b");
  fs.writeFileSync(refFile(g, "half"), '{"parentBr');
  await refused(g, "EIO", "rmdir tree/b", [], /nobody can say whether it stands on b/);
  await refused(g, "EIO", "mv tree/b tree/c");
  fs.unlinkSync(refFile(g, "half"));
  await works(g, "rmdir tree/b");
});

test("an open file goes on; rm -r of a branch removes nothing", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    before = snapshot(g.root);
  await run("rm", ["-rf", g.m.tree("feature")]);
  assert.deepEqual(snapshot(g.root), before);
  const out = await works(
    g,
    'f=$(ls -d "$PWD"/tree/feature/data/*.lance | head -1); sum=$(md5sum < "$f"); exec 7< "$f"; rmdir tree/feature; [ "$(md5sum <&7)" = "$sum" ] && echo same; ls "$f" 2>&1',
  ).catch((e) => e.message);
  assert.match(out, /same/);
  assert.equal((await must(run("ls", [g.m.tree(".")]))).stdout, "main\n");
});

test("C45 branches come and go while others list, read and merge", async (t) => {
  const g = await mounted(t, "chain", "lance12"),
    end = Date.now() + 8000,
    rounds = { made: 0, listed: 0 };
  const churn = async () => {
    while (Date.now() < end) {
      await works(g, "mkdir tree/tmp && rmdir tree/tmp");
      rounds.made++;
    }
  };
  const byStock = async () => {
    for (let i = 0; Date.now() < end; i++) {
      await stock.lance12.op(g.ds, "main", "fork", { name: `stock${i}` });
      await works(g, `rmdir tree/stock${i}`);
    }
  };
  const list = async () => {
    while (Date.now() < end) {
      const names = (await works(g, "ls tree")).split("\n");
      for (const name of ["exp", "feature", "idle", "main", "old"]) assert.ok(names.includes(name), `${name} is always listed`);
      await works(g, "ls -l tree/feature/data tree/exp/sub/_versions tags > /dev/null");
      rounds.listed++;
    }
  };
  await Promise.all([churn(), byStock(), list(), list()]);
  assert.ok(rounds.made >= 3 && rounds.listed >= 3, JSON.stringify(rounds));
  await merges(g, "old", "idle");
  await checkStorage(g, "feature", [...without(rows(0, 10), 1), ...rows(100, 2, "f")]);
  await checkView(g, "feature", [...without(rows(0, 10), 1), ...rows(100, 2, "f")]);
  settled(g);
});
