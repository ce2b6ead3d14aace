// SPDX-License-Identifier: Apache-2.0
// .rehome: what a branch reaches through base paths becomes its own. One version, the same rows, the same ids, no base path.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load, tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { checkManifest } from "../harness/invariants.mjs";
import { gc } from "../harness/keep.mjs";
import { OVERLAP, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, checkTip, control, merges, mounted, onEach } from "../harness/tip.mjs";
import { difference, snapshot } from "../harness/workspace.mjs";

const MAIN = OVERLAP.main;
const FEATURE = OVERLAP.feature;
const UNION = OVERLAP.union;

const shape = (m) => ({
  fragments: m.fragments.map((f) => [f.id, f.rows, f.files.map((x) => [x.path, x.size]), f.deletion?.path, f.rowIds]),
  max: m.maxFragment,
  config: m.config,
});
async function rehome(g, branch, words = "all", result = "rehomed") {
  const before = load(g.storage(branch)),
    r = await ctl(control(g, branch, ".rehome"), words);
  assert.equal(r.code, 0, `echo '${words}' > .rehome: ${r.errno} ${r.answer.text}`);
  assert.equal(r.answer.result, result, r.answer.text);
  if (result !== "rehomed") {
    assert.equal(tip(g.storage(branch)), before.version);
    return r.answer;
  }
  const m = checkManifest(g.storage(branch), branch);
  assert.equal(m.version, before.version + 1);
  assert.deepEqual(shape(m), shape(before), "no fragment, file name or id changed");
  assert.deepEqual(m.bases, [], "no base path is left");
  assert.ok(m.fragments.every((f) => f.files.every((x) => x.base === undefined) && f.deletion?.base === undefined));
  return r.answer;
}

for (const mode of ["link", "copy"])
  onEach(`a branch, by ${mode}: it stands alone, and stock goes on with it`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine),
      op = (...a) => stock[engine].op(g.ds, ...a);
    await rehome(g, "feature", `all mode=${mode}`);
    for (const file of fs.readdirSync(path.join(g.ds, "data"))) {
      const own = path.join(g.storage("feature"), "data", file);
      if (fs.existsSync(own))
        assert.equal(fs.statSync(own).ino === fs.statSync(path.join(g.ds, "data", file)).ino, mode === "link", file);
    }
    await checkTip(g, "feature", FEATURE);
    await rehome(g, "feature", "all", "up-to-date");
    await op("feature", "delete", { where: "id = 30" });
    await op("feature", "add", { rows: rows(7000, 1) });
    await op("feature", "optimize");
    await op("main", "delete", { where: "id = 40" });
    const feature = [...without(FEATURE, 30), ...rows(7000, 1)];
    await checkTip(g, "feature", feature);
    await checkThenUnmount(g, { main: without(MAIN, 40), feature });
    fs.renameSync(path.join(g.ds, "data"), path.join(g.ds, "gone")); // main's files are not needed any more
    await checkStorage(g, "feature", feature);
    fs.renameSync(path.join(g.ds, "gone"), path.join(g.ds, "data"));
  });

onEach("a merged target: grafts come home, merges go on in both directions, .gc takes the line storage", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  await merges(g, "main", "feature");
  await rehome(g, "main");
  await checkTip(g, "main", UNION);
  await op("feature", "add", { rows: rows(7000, 1) });
  await op("main", "delete", { where: "id = 1001" });
  await merges(g, "main", "feature");
  const all = [...without(UNION, 1001), ...rows(7000, 1)];
  await checkTip(g, "main", all);
  await rehome(g, "main");
  await merges(g, "feature", "main", ["merged", "fast-forward"]);
  await checkTip(g, "feature", all);
  await op("main", "clean");
  await op("main", "drop", { name: "feature" });
  await gc(g);
  await checkThenUnmount(g, { main: all });
});

for (const generator of ["bitmap_deletes", "stable_row_ids"])
  onEach(`${generator}: rehomed, read, merged`, async (t, engine) => {
    const g = await mounted(t, generator, engine),
      before = await stock[engine].read(g.ds, "feature");
    await rehome(g, "feature");
    const after = await stock[engine === "lance10" ? "lance12" : "lance10"].read(g.ds, "feature");
    assert.deepEqual(after.rows, before.rows);
    await stock[engine].op(g.ds, "feature", "delete", { where: "id = 7" });
    await g.m.unmount();
  });

onEach("an inherited index comes along", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine);
  const before = await stock[engine].read(g.ds, "feature");
  await rehome(g, "feature");
  const m = load(g.storage("feature"));
  assert.ok(m.indices.length > 0 && m.indices.every((i) => i.base === undefined), "indexes without base id");
  const after = await stock[engine].read(g.ds, "feature");
  assert.deepEqual([after.rows, after.wrong], [before.rows, []]);
  await g.m.unmount();
});

onEach("C63: a clone whose files lie in another data set stands alone afterwards", async (t, engine) => {
  const g = await mounted(t, "clones", engine, { generated: { name: "b" } }),
    all = [...without(rows(0, 300), 7), ...rows(1000, 2, "b")];
  await checkTip(g, "main", all);
  const answer = await rehome(g, "main");
  assert.match(answer.text, /copied/, "files of another data set are copied, not linked");
  await checkThenUnmount(g, { main: all });
  fs.renameSync(path.join(g.root, "a.lance"), path.join(g.root, "away.lance"));
  await checkStorage(g, "main", all);
});

onEach("words, and what changes nothing", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    before = snapshot(g.root);
  for (const [words, errno] of [
    ["some", "EINVAL"],
    ["all main", "EINVAL"],
    ["all mode=graft", "EINVAL"],
    ["all expect=1", "ESTALE"],
  ])
    assert.equal((await ctl(control(g, "feature", ".rehome"), words)).errno, errno, words);
  const dry = await rehome(g, "feature", "all dry-run", "dry-run");
  assert.equal(Number(dry["base-paths"]), 1);
  await rehome(g, "main", "all", "up-to-date");
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});
