// SPDX-License-Identifier: Apache-2.0
// What is not due everywhere: schema changes, compaction against changes, overwrite, restore, stable row ids, histories
// that were cleaned away. Each merge here is right to the row or refused with nothing changed; half of one never.
import assert from "node:assert/strict";
import fs from "node:fs";
import { edit, remade } from "../interop/wire.mjs";
import { load, tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { changed, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { mount } from "../harness/mount.mjs";
import { checkTip, control, mergesOrRefuses, mounted, onEach, stops } from "../harness/tip.mjs";
import { generate, workspace } from "../harness/workspace.mjs";

const SIXTY = rows(0, 60);
onEach(
  "C05 compaction: main was compacted, feature deleted and appended; both have a fragment 6",
  async (t, engine) => {
    const g = await mounted(t, "compaction", engine);
    const all = [...without(SIXTY, 3, 13, 20, 55), ...rows(500, 2, "f")];
    assert.equal(all.length, 58);
    const outcome = await mergesOrRefuses(g, "main", "feature", all);
    if (outcome === "refused") {
      const { answer } = await ctl(control(g, "main"), "feature");
      assert.match(answer.text, /compact|rewrite|rewrote/i, "a refusal names the compaction");
      await checkTip(g, "main", without(SIXTY, 20));
    }
    await checkTip(g, "feature", [...without(SIXTY, 3, 13, 55), ...rows(500, 2, "f")]);
  },
);

onEach("C05 compaction the other ways round", async (t, engine) => {
  const g = await mounted(t, "compaction", engine);
  await mergesOrRefuses(g, "feature", "main", [...without(SIXTY, 3, 13, 20, 55), ...rows(500, 2, "f")]);
  await mergesOrRefuses(g, "main", "compacted", without(SIXTY, 20));
  await mergesOrRefuses(g, "compacted", "main", without(SIXTY, 20));
});

// add_columns: columns label (main), score, label as another type (clash), label with the same values (same), extra (backfill)
const HUNDRED = rows(0, 100),
  LABELLED = without(HUNDRED, 60).map((r) => ({ ...r, label: `L${r.v}` }));
const SCHEMA = {
  score: [...LABELLED.map((r) => ({ ...r, score: r.n * 2 })), { id: 900, v: "s", n: 1, label: null, score: 5 }],
  same: LABELLED,
  backfill: without(LABELLED, 7).map((r) => ({ ...r, extra: r.n + 1 })),
};
for (const [branch, all] of Object.entries(SCHEMA)) {
  onEach(`C18 add_columns ${branch}: columns of both sides, or a refusal`, async (t, engine) => {
    const g = await mounted(t, "add_columns", engine);
    if ((await mergesOrRefuses(g, "main", branch, all)) === "refused") await checkTip(g, "main", LABELLED);
  });
}
onEach("add_columns clash: one name with two types never merges", async (t, engine) => {
  const g = await mounted(t, "add_columns", engine);
  const r = await ctl(control(g, "main"), "clash");
  assert.ok(["ECANCELED", "EOPNOTSUPP"].includes(r.errno), `exit ${r.code} ${r.errno}: ${r.answer.text}`);
  await checkTip(g, "main", LABELLED);
});

const TWENTY = changed(rows(0, 20), 3, { v: "edited" });
// The row that main updated after the fork has no value in a column that the branch added.
const DROPS = {
  gap: TWENTY.map(({ id, v }) => ({ id, v, m: id === 3 ? null : id * 10 })),
  rename: TWENTY.map(({ id, v, n }) => ({ id, text: v, n })),
};
for (const [branch, all] of Object.entries(DROPS)) {
  onEach(`drop_vs_edit ${branch}: the schema change and the edit, or a refusal`, async (t, engine) => {
    const g = await mounted(t, "drop_vs_edit", engine);
    if ((await mergesOrRefuses(g, "main", branch, all)) === "refused") await checkTip(g, "main", TWENTY);
  });
}
onEach("drop_vs_edit drop: the edit is not dropped with its column", async (t, engine) => {
  const g = await mounted(t, "drop_vs_edit", engine);
  await stops(g, "main", "drop", ["ECANCELED", "EOPNOTSUPP"]);
  await checkTip(g, "main", TWENTY);
});

const GROWN = [...rows(0, 20), ...rows(20, 1, "m")];
onEach(
  "overwrite_restore ow: a branch that was overwritten against a main that moved never merges by half",
  async (t, engine) => {
    const g = await mounted(t, "overwrite_restore", engine);
    const r = await ctl(control(g, "main"), "ow");
    assert.ok(["ECANCELED", "EOPNOTSUPP"].includes(r.errno), `exit ${r.code} ${r.errno}: ${r.answer.text}`);
    await checkTip(g, "main", GROWN);
  },
);
onEach("overwrite_restore re: what a restore took back does not come, or the merge is refused", async (t, engine) => {
  const g = await mounted(t, "overwrite_restore", engine);
  if ((await mergesOrRefuses(g, "main", "re", [...GROWN, ...rows(800, 1, "a")])) === "refused")
    await checkTip(g, "main", GROWN);
});

onEach(
  "stable_row_ids: both sides gave out the same ids; right rows or a refusal, and stock goes on",
  async (t, engine) => {
    const g = await mounted(t, "stable_row_ids", engine);
    const main = [...changed(rows(0, 10), 5, { v: "mm" }), ...rows(200, 4, "m")];
    const all = [...without(changed(main, 2, { v: "ff" }), 9), ...rows(100, 3, "f")];
    const now = (await mergesOrRefuses(g, "main", "feature", all)) === "merged" ? all : main;
    // An id given out twice shows at the next update, index or compaction only.
    const op = (...a) => stock[engine].op(g.ds, ...a);
    await op("main", "update", { where: "id IN (3, 100)", values: { v: "later" } });
    await op("main", "index", { column: "id" });
    await op("main", "optimize");
    await checkTip(g, "main", changed(now, [3, 100], { v: "later" }));
  },
);

const CLEANED = [...without(rows(0, 20), 3), ...rows(20, 5, "m")];
onEach("cleaned early: main's history since the fork is cleaned away", async (t, engine) => {
  const g = await mounted(t, "cleaned", engine);
  await mergesOrRefuses(g, "main", "early", [...CLEANED, ...rows(100, 1, "e")]);
});
onEach("cleaned late: the branch's own history is cleaned away", async (t, engine) => {
  const g = await mounted(t, "cleaned", engine);
  await mergesOrRefuses(g, "main", "late", [...CLEANED, ...[0, 1, 2, 3].flatMap((i) => rows(200 + i, 1, "l"))]);
});

const INDEXED = [...changed(rows(0, 1000), span(0, 4), { n: -1 }), ...rows(2000, 10, "m"), ...rows(5000, 10, "f")];
onEach("index_on_branch: indexes on both sides; rows and filters right, or a refusal", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine);
  if ((await mergesOrRefuses(g, "main", "feature", INDEXED)) === "refused") return;
  const names = load(g.ds).indices.map((i) => i.name);
  assert.ok(names.includes("id_idx"), "the target keeps its index");
  for (const i of load(g.ds).indices) assert.equal(i.base, undefined, "an index is never reached through a base id");
  await stock[engine].op(g.ds, "main", "optimize");
  await checkTip(g, "main", INDEXED);
});

onEach("index_on_branch by fast-forward into the parent: filters right", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine);
  const child = [...changed(rows(0, 1000), span(0, 4), { n: -1 }), ...rows(5000, 10, "f"), ...rows(6000, 3, "c")];
  const r = await ctl(control(g, "feature"), "feature/child");
  if (r.code !== 0) return assert.ok(["EOPNOTSUPP", "ECANCELED"].includes(r.errno), r.stderr);
  await checkTip(g, "feature", child);
});

// Manifest.reader_feature_flags is field 9, writer_feature_flags field 10; bit 40 stands for a feature of a later Lance.
const LATER = 1n << 40n;
const flag = (file, ...fields) =>
  fs.writeFileSync(
    file,
    remade(fs.readFileSync(file), (m) => fields.reduce((x, f) => edit(x, f, (v) => (v ?? 0n) | LATER), m)),
  );
for (const [what, branch, fields] of [
  ["source", "feature", [9, 10]],
  ["target, for writers only,", "main", [10]],
]) {
  onEach(`a format feature that nobody knows, in the ${what} is refused, not guessed at`, async (t, engine) => {
    const w = workspace(t),
      g = await generate(w, "overlap_deletes", engine);
    flag(load(g.storage(branch)).file, ...fields);
    g.m = await mount(w, g.ds);
    await stops(g, "main", "feature", "EOPNOTSUPP", "refused");
    assert.equal(tip(g.ds), 6, "no version was written");
  });
}
