// SPDX-License-Identifier: Apache-2.0
// graft, link and copy: how the source's files become reachable from the target, and who may go away afterwards.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { OVERLAP, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, checkTip, merges, mounted, onEach } from "../harness/tip.mjs";

const UNION = OVERLAP.union;
const FEATURE = OVERLAP.feature;
const inode = (p) => fs.statSync(p).ino;

// The data file that feature appended, as main's manifest has it after the merge.
function grafted(g) {
  const own = fs.readdirSync(path.join(g.storage("feature"), "data")).filter((f) => f.endsWith(".lance"));
  assert.equal(own.length, 1);
  const m = load(g.ds),
    file = m.fragments.flatMap((f) => f.files).find((f) => f.path === own[0]);
  assert.ok(file, "main's manifest names feature's data file under its own name");
  return { m, file, source: path.join(g.storage("feature"), "data", own[0]) };
}

for (const how of ["by default", "mode=graft in the command", "mode=graft at the mount"]) {
  onEach(`graft (${how}): the file is reached by a base path of line storage`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine, { options: how.endsWith("mount") ? ["mode=graft"] : [] });
    await merges(g, "main", how.endsWith("command") ? "feature mode=graft" : "feature");
    const { m, file, source } = grafted(g),
      base = m.bases.find((b) => b.id === file.base);
    assert.ok(base, "the file has a base id");
    assert.match(base.path, /\/t\.lance\/_lancefs\/lines\/[0-9a-f]{32}$/);
    assert.equal(
      path.dirname(path.dirname(path.dirname(base.path))),
      g.ds,
      "made from the string that the table holds",
    );
    assert.equal(base.root, true);
    assert.equal(base.name, "feature");
    assert.equal(
      inode(path.join(base.path, "data", file.path)),
      inode(source),
      "line storage holds a hard link: nothing is copied",
    );
    assert.deepEqual(
      fs.readdirSync(path.join(g.ds, "data")).filter((f) => f === file.path),
      [],
    );
    await checkThenUnmount(g, { main: UNION, feature: FEATURE });
  });
}

for (const at of ["command", "mount"]) {
  onEach(`link (in the ${at}): a hard link in the target's own storage, no base path`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine, { options: at === "mount" ? ["mode=link"] : [] });
    await merges(g, "main", at === "mount" ? "feature" : "feature mode=link");
    const { m, file, source } = grafted(g);
    assert.deepEqual(m.bases, []);
    assert.equal(file.base, undefined);
    assert.equal(inode(path.join(g.ds, "data", file.path)), inode(source));
    await checkThenUnmount(g, { main: UNION, feature: FEATURE });
  });
}

onEach("copy: a file of its own with the same bytes, no base path", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await merges(g, "main", "feature mode=copy");
  const { m, file, source } = grafted(g),
    copy = path.join(g.ds, "data", file.path);
  assert.deepEqual(m.bases, []);
  assert.notEqual(inode(copy), inode(source));
  assert.deepEqual(fs.readFileSync(copy), fs.readFileSync(source));
  await checkThenUnmount(g, { main: UNION, feature: FEATURE });
});

onEach("a command's mode goes before the mount's", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine, { options: ["mode=copy"] });
  await merges(g, "main", "feature mode=link");
  const { file, source } = grafted(g);
  assert.equal(inode(path.join(g.ds, "data", file.path)), inode(source));
  await checkTip(g, "main", UNION);
});

for (const mode of ["graft", "link", "copy"]) {
  onEach(`${mode}: deleting the source with stock Lance loses nothing`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine);
    await merges(g, "main", `feature mode=${mode}`);
    await stock[engine].op(g.ds, "main", "drop", { name: "feature" });
    assert.ok(!fs.existsSync(g.storage("feature")), "the branch is gone");
    assert.ok(!(await fs.promises.readdir(path.join(g.m.mnt, "tree"))).includes("feature"), "and no longer shown");
    await checkThenUnmount(g, { main: UNION });
  });

  onEach(`${mode}: compaction and clean-up of the source lose nothing`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine);
    await merges(g, "main", `feature mode=${mode}`);
    for (const op of ["optimize", "clean"]) await stock[engine].op(g.ds, "feature", op);
    await checkThenUnmount(g, { main: UNION, feature: FEATURE });
  });

  onEach(
    `${mode}: into a branch, then stock cleans main, compacts the branch and deletes the source`,
    async (t, engine) => {
      const g = await mounted(t, "chain", engine);
      const merged = [...without(rows(0, 10), 1), ...rows(100, 2, "f"), ...rows(400, 1, "o")];
      await merges(g, "feature", `old mode=${mode}`);
      await checkTip(g, "feature", merged);
      await stock[engine].op(g.ds, "main", "drop", { name: "old" });
      await stock[engine].op(g.ds, "main", "clean");
      await checkTip(g, "feature", merged);
      await stock[engine].op(g.ds, "feature", "clean");
      await checkThenUnmount(g, { feature: merged });
    },
  );
}

onEach(
  "link: main needs nothing of the source's folder or of an absolute path; a moved data set still reads",
  async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine);
    await merges(g, "main", "feature mode=link");
    await g.m.unmount();
    const moved = path.join(g.w.dir, "elsewhere");
    fs.renameSync(g.root, moved);
    await checkStorage({ ds: path.join(moved, "t.lance") }, "main", UNION);
  },
);
