// SPDX-License-Identifier: Apache-2.0
// Merges where names and places are awkward: branch names, folders with odd letters, clones whose files lie outside,
// data sets that were moved or copied, deletion files that are damaged.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { load } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { expectRows, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import {
  checkStorage,
  checkThenUnmount,
  checkTip,
  checkView,
  merges,
  mounted,
  onEach,
  stops,
} from "../harness/tip.mjs";
import { difference, generate, place, snapshot, workspace } from "../harness/workspace.mjs";

const TEN = rows(0, 10),
  B = rows(100, 1, "b");

onEach("C19 names: awkward branch names merge, as source and as target", async (t, engine) => {
  const g = await mounted(t, "names", engine);
  await merges(g, "main", "f", "fast-forward");
  let all = [...TEN, ...B];
  for (const line of ["f/data", "-- -rf", "ü", "main/.merge"]) {
    await merges(g, "main", line);
    all = [...all, ...B];
    await checkTip(g, "main", all);
  }
  await merges(g, "a/b/c/d/e/f", "a");
  await checkThenUnmount(g, { main: all, "a/b/c/d/e/f": [...TEN, ...B, ...B], "-rf": [...TEN, ...B] });
});

onEach("C19 names: a branch whose directory lies in another's is a target too", async (t, engine) => {
  const g = await mounted(t, "names", engine);
  const file = path.join(g.m.mnt, "tree", "f%2Fdata", ".merge");
  const r = await ctl(file, "f");
  assert.equal(r.code, 0, r.stderr);
  await checkTip(g, "f/data", [...TEN, ...B, ...B], { shown: "f%2Fdata" });
  await checkTip(g, "f", [...TEN, ...B]);
});

onEach("`A` and `a` are two branches", async (t, engine) => {
  const g = await mounted(t, "names", engine);
  await stock[engine].op(g.ds, "A", "add", { rows: rows(500, 1) });
  await merges(g, "main", "A", "fast-forward");
  await checkThenUnmount(g, { main: [...TEN, ...B, ...rows(500, 1)], a: [...TEN, ...B] });
});

// paths: main got 200, feature 100 and lost 2. In a?b stock Lance itself puts the branch elsewhere.
const BOTH = [...without(TEN, 2), ...rows(100, 1, "f"), ...rows(200, 1, "m")];
onEach("C51 paths: folders with spaces, other scripts, percent, hash, quotes, tilde", async (t, engine) => {
  const w = workspace(t),
    { root } = await generate(w, "paths", engine);
  const made = fs.readdirSync(root).filter((d) => fs.existsSync(path.join(root, d, "t.lance/_versions")));
  assert.ok(made.length >= 11, made.join(" "));
  for (const d of made.filter((x) => x !== "a?b")) {
    await t.test(JSON.stringify(d), async (sub) => {
      const g = { ...place(path.join(root, d, "t.lance")), root },
        before = fs.readdirSync(root);
      g.m = await mount(workspace(sub), g.ds);
      const shown = await stock[engine].read(g.m.tree("feature"));
      expectRows(shown, [...without(TEN, 2), ...rows(100, 1, "f")], "feature through the mount");
      await merges(g, "main", "feature");
      await checkThenUnmount(g, { main: BOTH });
      if (engine === "lance10")
        assert.deepEqual(fs.readdirSync(root), before, "nothing is created beside the data set");
    });
  }
});

onEach("C51 paths a?b: a branch that stock put elsewhere is missing by itself, the rest works", async (t, engine) => {
  const w = workspace(t),
    { root } = await generate(w, "paths", engine),
    g = { ...place(path.join(root, "a?b/t.lance")), root };
  g.m = await mount(w, g.ds);
  await stops(g, "main", "feature", "ENOENT");
  await checkView(g, "main", [...TEN, ...rows(200, 1, "m")]);
});

onEach(
  "clones: a branch of a clone merges into the clone, files outside the data set are reached",
  async (t, engine) => {
    const g = await mounted(t, "clones", engine, { generated: { name: "b" } });
    const b = [...without(rows(0, 300), 7), ...rows(1000, 2, "b")],
      feature = [...without(b, 8), ...rows(2000, 2, "f")];
    await checkTip(g, "feature", feature);
    await merges(g, "main", "feature", "fast-forward");
    await checkTip(g, "main", feature);
    await stock[engine].op(g.ds, "main", "delete", { where: "id IN (20, 2001)" });
    await checkThenUnmount(g, { main: without(feature, 20, 2001), feature });
  },
);

onEach("clones: a true merge in a clone, both ways", async (t, engine) => {
  const g = await mounted(t, "clones", engine, { generated: { name: "b" } });
  const b = [...without(rows(0, 300), 7), ...rows(1000, 2, "b")];
  await stock[engine].op(g.ds, "main", "delete", { where: "id = 9" });
  await stock[engine].op(g.ds, "main", "add", { rows: rows(4000, 1) });
  const both = [...without(b, 8, 9), ...rows(2000, 2, "f"), ...rows(4000, 1)];
  await merges(g, "main", "feature");
  await checkTip(g, "main", both);
  await merges(g, "feature", "main", "fast-forward");
  await checkThenUnmount(g, { main: both, feature: both });
});

onEach("clones: a clone of a clone is mounted whole", async (t, engine) => {
  const g = await mounted(t, "clones", engine, { generated: { name: "c" } });
  await checkThenUnmount(g, { main: [...without(rows(0, 300), 7), ...rows(1000, 2, "b"), ...rows(3000, 1, "c")] });
});

// moved: base paths name a place that is gone (here) or holds other bytes (copy)
const FEATURE = [...without(TEN, 4), ...rows(100, 2, "f")],
  CHILD = [...FEATURE, ...rows(200, 1, "c")];
for (const dir of ["here", "copy"]) {
  const at = (root) => ({ ...place(path.join(root, dir, "t.lance")), root });
  onEach(`C23 moved ${dir}: the views read, and merges by link are right for stock too`, async (t, engine) => {
    const w = workspace(t),
      { root } = await generate(w, "moved", engine),
      g = at(root);
    g.m = await mount(w, g.ds);
    await checkView(g, "feature", FEATURE);
    await checkView(g, "child", CHILD);
    await merges(g, "main", "child mode=link", "fast-forward");
    await checkTip(g, "main", CHILD);
    await checkThenUnmount(g, { main: CHILD });
  });

  onEach(
    `C23 moved ${dir}: a merge by graft is right through the mount, never wrong in the storage`,
    async (t, engine) => {
      const w = workspace(t),
        { root } = await generate(w, "moved", engine),
        g = at(root);
      g.m = await mount(w, g.ds);
      await stock[engine].op(g.ds, "main", "add", { rows: rows(300, 1) });
      await merges(g, "main", "feature");
      const all = [...FEATURE, ...rows(300, 1)];
      await checkView(g, "main", all);
      // Stock follows the absolute string, which names a place that is gone or another data set: an error, or these rows.
      const read = await stock[engine].read(g.ds, "main").catch((e) => e);
      if (!(read instanceof Error)) await checkStorage(g, "main", all);
    },
  );
}

// A deletion file that cannot be read, or lies about its rows: never taken for an empty one.
for (const kind of ["deletion_gone", "deletion_half", "deletion_junk", "deleted_more_than_rows"]) {
  onEach(`C54 ${kind}: the merge is refused, both ways, and the mount stays alive`, async (t, engine) => {
    const w = workspace(t),
      { root } = await generate(w, "hostile", engine),
      g = { ...place(path.join(root, kind, "t.lance")), root };
    g.m = await mount(w, g.ds);
    for (const [target, source] of [
      ["main", "feature"],
      ["feature", "main"],
    ]) {
      if (target === "feature") await stock[engine].op(g.ds, "main", "delete", { where: "id = 0" });
      const a = await stops(g, target, source, ["EIO", "EACCES"], undefined, { leftovers: true });
      assert.doesNotMatch(a.text, /^result: (merged|fast-forward|up-to-date|empty-merge)/m);
    }
    await checkTip(g, "main", without(TEN, 0));
  });
}

onEach("C54 once the deletion file is back the same merge works, without a remount", async (t, engine) => {
  const w = workspace(t),
    { root } = await generate(w, "hostile", engine),
    g = { ...place(path.join(root, "good/t.lance")), root };
  const dir = path.join(g.storage("feature"), "_deletions"),
    [name] = fs.readdirSync(dir),
    away = path.join(w.dir, "away");
  await stock[engine].op(g.ds, "main", "delete", { where: "id = 0" });
  fs.renameSync(path.join(dir, name), away);
  g.m = await mount(w, g.ds);
  await stops(g, "main", "feature", ["EIO", "EACCES"], undefined, { leftovers: true });
  await checkTip(g, "main", without(TEN, 0));
  fs.renameSync(away, path.join(dir, name));
  await merges(g, "main", "feature");
  await checkThenUnmount(g, { main: [...without(TEN, 0, 4), ...rows(100, 2, "f")] });
});

test(
  "C54 a deletion file without read permission, for a mount by a plain user",
  { skip: "needs a user other than root who may open /dev/fuse" },
  () => {},
);

onEach("many small fragments merge in one command", async (t, engine) => {
  const n = 150,
    g = await mounted(t, "many_fragments", engine, { generated: { args: [String(n)] } });
  await stock[engine].op(g.ds, "main", "delete", { where: "id % 10 = 0" });
  await merges(g, "main", "wide");
  const all = [...rows(0, n).filter((r) => r.id % 10), ...Array.from({ length: 20 }, (_, i) => rows(n + i, 1, "w")[0])];
  assert.equal(load(g.ds).fragments.length, n - n / 10 + 20);
  await checkThenUnmount(g, { main: all });
});

onEach("a merge leaves every other branch's storage as it was", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  const others = () => new Map([...snapshot(g.ds)].filter(([p]) => p.startsWith("tree/") || p.startsWith("_refs/")));
  const before = others();
  await merges(g, "main", "exp/sub/deep");
  assert.deepEqual(difference(before, others()), []);
});
