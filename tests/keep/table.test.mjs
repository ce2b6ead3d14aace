// SPDX-License-Identifier: Apache-2.0
// C02 and kin: after a merge in each mode stock Lance deletes the source, compacts and cleans it or the target, by either
// engine and under other spellings of the path, with .gc after each step. The target keeps every row, and the next merge
// finds its base.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { gc } from "../harness/keep.mjs";
import { OVERLAP, changed, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, merges, mounted, onEach } from "../harness/tip.mjs";
import { ENGINES } from "../harness/workspace.mjs";

const FEATURE = OVERLAP.feature;
const UNION = OVERLAP.union;

// The same directory by other strings. Stock Lance compares base paths with the string that it was opened by: where main
// is cleaned under another one, it removes what only branches reach of main's, whatever lancefs does.
const SPELLINGS = {
  plain: (g) => g.ds,
  "a file URL": (g) => `file://${encodeURI(g.ds)}`,
  "a relative path": (g) => `./${path.relative(process.cwd(), g.ds)}`,
  "a link": (g) => {
    const to = path.join(g.w.dir, "link");
    if (!fs.existsSync(to)) fs.symlinkSync(g.root, to);
    return path.join(to, path.basename(g.ds));
  },
};
const clean = (branch) => [
  [branch, "optimize"],
  [branch, "clean"],
];
const LIVES = {
  "the source deleted": [["main", "drop", { name: "feature" }]],
  "the source compacted and cleaned": clean("feature"),
  "the target compacted and cleaned": clean("main"),
  "source, target, source deleted": [...clean("feature"), ...clean("main"), ["main", "drop", { name: "feature" }]],
  "target, source": [...clean("main"), ...clean("feature")],
};

async function nextMerge(g, worker, life, mode, all) {
  const op = (...a) => stock[worker].op(g.ds, ...a),
    dropped = LIVES[life].some(([, what]) => what === "drop"),
    source = dropped ? "again" : "feature";
  if (dropped) await op("main", "fork", { name: source });
  await op(source, "add", { rows: rows(7000, 1) });
  await op(source, "delete", { where: "id = 33" });
  await op("main", "update", { where: "id = 44", values: { v: "up" } });
  const next = [...changed(without(all, 33), 44, { v: "up" }), ...rows(7000, 1)];
  await merges(g, "main", `${source} mode=${mode}`);
  await checkStorage(g, "main", next);
  await gc(g);
  return next;
}

for (const mode of ["graft", "link", "copy"])
  for (const [i, life] of Object.keys(LIVES).entries())
    onEach(`${mode}, then ${life}, .gc each time: every row, and the next merge`, async (t, engine) => {
      const g = await mounted(t, "overlap_deletes", engine),
        worker = ENGINES[(i + ENGINES.indexOf(engine)) % 2];
      await merges(g, "main", `feature mode=${mode}`);
      let feature = true;
      for (const [branch, what, args] of LIVES[life]) {
        await stock[worker].op(g.ds, branch, what, args);
        feature &&= what !== "drop";
        await gc(g);
        await checkStorage(g, "main", UNION);
        if (feature) await checkStorage(g, "feature", FEATURE);
      }
      const all = await nextMerge(g, worker, life, mode, UNION);
      await checkThenUnmount(g, { main: all });
    });

for (const spelling of Object.keys(SPELLINGS).slice(1))
  for (const mode of ["graft", "link", "copy"])
    onEach(`${mode}, source and target cleaned through ${spelling}: main keeps every row`, async (t, engine) => {
      const g = await mounted(t, "overlap_deletes", engine);
      await merges(g, "main", `feature mode=${mode}`);
      for (const [branch, what] of [...clean("feature"), ...clean("main")]) {
        await stock[engine].op(SPELLINGS[spelling](g), branch, what);
        await gc(g);
        await checkStorage(g, "main", UNION);
      }
      await stock[engine].op(SPELLINGS[spelling](g), "feature", "add", { rows: rows(7000, 1) });
      await merges(g, "main", `feature mode=${mode}`);
      await checkStorage(g, "main", [...UNION, ...rows(7000, 1)]);
      await stock[engine].op(SPELLINGS[spelling](g), "main", "drop", { name: "feature" });
      await gc(g);
      await checkThenUnmount(g, { main: [...UNION, ...rows(7000, 1)] });
    });

onEach("both ways, cleaned on both sides in turn: each finds its base again and again", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  let all = UNION;
  await merges(g, "main", "feature");
  for (let i = 0; i < 3; i++) {
    const [from, to] = i % 2 ? ["feature", "main"] : ["main", "feature"],
      added = rows(7000 + i, 1);
    await op(from, "add", { rows: added });
    await op(to, "delete", { where: `id = ${100 + i}` });
    await merges(g, to, from, ["merged", "fast-forward"]);
    all = [...without(all, 100 + i), ...added];
    for (const [branch, what] of [...clean(from), ...clean(to)]) {
      await op(branch, what);
      await gc(g);
    }
    await checkStorage(g, to, all);
    await merges(g, from, to, ["merged", "fast-forward"]);
    await checkStorage(g, from, all);
  }
  assert.equal((await gc(g)).data.files, 0);
  await checkThenUnmount(g, { main: all, feature: all });
});
