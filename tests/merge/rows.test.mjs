// SPDX-License-Identifier: Apache-2.0
// Rows: appends, deletes and updates on both sides. Each merge is read back by both engines, from the storage and
// through the mount, before and after the unmount.
import assert from "node:assert/strict";
import { load, tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { changed, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import {
  checkStorage,
  checkThenUnmount,
  checkTip,
  control,
  merges,
  mounted,
  NOTHING_NEW,
  onEach,
  stops,
} from "../harness/tip.mjs";

// overlap_deletes: three fragments of 100; see the generator
const BASE = rows(0, 300);
const MAIN = [...without(BASE, span(15, 24), span(250, 259)), ...rows(2000, 2, "m")];
const FEATURE = [...without(BASE, span(10, 19), span(150, 159)), ...rows(1000, 3, "f")];
const UNION = [
  ...without(BASE, span(10, 24), span(150, 159), span(250, 259)),
  ...rows(1000, 3, "f"),
  ...rows(2000, 2, "m"),
];
assert.equal(UNION.length, 270);

onEach("C04 overlap_deletes: both sides deleted, the deletion vectors are united", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await checkTip(g, "main", MAIN);
  await checkTip(g, "feature", FEATURE);
  const a = await merges(g, "main", "feature");
  assert.equal(a.source, "feature@6");
  assert.equal(a.target, "main@6");
  assert.equal(a.base, "main@3");
  assert.equal(a.version, "7");
  assert.equal(a.conflicts, "0");
  assert.equal(a.rows, "+3 -15", "three rows of feature come; 10..14 and 150..159 go");
  assert.equal(a.fragments, "+1 -0 ~2");
  const m = load(g.ds);
  const gone = Object.fromEntries(m.fragments.map((f) => [f.id, f.deletion?.deleted ?? 0]));
  assert.deepEqual(gone, { 0: 15, 1: 10, 2: 10, 3: 0, 4: 0 });
  await checkThenUnmount(g, { main: UNION, feature: FEATURE });
});

onEach("C04 overlap_deletes the other way round: main into feature", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await merges(g, "feature", "main");
  await checkThenUnmount(g, { main: MAIN, feature: UNION });
});

onEach(
  "overlap_deletes there and back: the second merge is a fast-forward, more merges bring nothing",
  async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine);
    await merges(g, "main", "feature");
    await merges(g, "main", "feature", "up-to-date");
    await merges(g, "feature", "main", "fast-forward");
    await merges(g, "feature", "main", "up-to-date");
    await merges(g, "main", "feature", NOTHING_NEW);
    await merges(g, "feature", "main", NOTHING_NEW);
    await checkThenUnmount(g, { main: UNION, feature: UNION });
  },
);

onEach("C04 bitmap_deletes: .bin, .arrow and the counts in the manifest", async (t, engine) => {
  const g = await mounted(t, "bitmap_deletes", engine),
    N = 200_000;
  const inMain = (i) => !(i >= 70_000 && i <= 140_000) && i % 20_000 !== 1,
    FEW = [1, 65_535, 65_536, 199_999];
  const withFeature = span(0, N - 1).filter((i) => inMain(i) && i % 3 !== 0),
    all = without(
      withFeature.map((id) => ({ id })),
      FEW,
    );
  assert.deepEqual([withFeature.length, all.length], [86_660, 86_658]);
  await merges(g, "main", "feature");
  assert.equal(load(g.ds).fragments[0].deletion.deleted, N - withFeature.length);
  await checkStorage(
    g,
    "main",
    withFeature.map((id) => ({ id })),
  );
  await merges(g, "main", "few");
  assert.equal(load(g.ds).fragments[0].deletion.deleted, N - all.length);
  await checkThenUnmount(g, { main: all });
});

const UPDATES = rows(0, 100);
for (const [branch, what] of [
  ["d_u", "deleted there, updated here"],
  ["u_d", "updated there, deleted here"],
  ["u_u", "updated on both sides"],
]) {
  const row = branch === "u_d" ? 40 : 12;
  onEach(`C74 delete_vs_update ${branch}: a row ${what} is a conflict in both directions`, async (t, engine) => {
    const g = await mounted(t, "delete_vs_update", engine);
    for (const [target, source] of [
      ["main", branch],
      [branch, "main"],
    ]) {
      const a = await stops(g, target, source, "ECANCELED", "conflict");
      assert.ok(Number(a.conflicts) >= 1, a.text);
      assert.match(a.text, new RegExp(`\\b${row}\\b`), "the answer names the row");
    }
    await checkThenUnmount(g, { main: without(changed(UPDATES, 12, { v: "main" }), 40) });
  });
}

onEach("C74 delete_vs_update u_o: other rows of the same fragment merge in both directions", async (t, engine) => {
  const g = await mounted(t, "delete_vs_update", engine);
  const both = without(changed(changed(UPDATES, 12, { v: "main" }), 70, { v: "branch" }), 40);
  const a = await merges(g, "main", "u_o");
  assert.equal(a.rows, "+1 -1", "the updated row leaves and comes");
  await checkTip(g, "main", both);
  await merges(g, "u_o", "main", "fast-forward");
  await checkThenUnmount(g, { main: both, u_o: both });
});

onEach("delete_vs_update between branches: u_d into d_u merges, u_u into d_u is a conflict", async (t, engine) => {
  const g = await mounted(t, "delete_vs_update", engine);
  const both = without(changed(UPDATES, 40, { v: "branch" }), 12);
  await stops(g, "d_u", "u_u", "ECANCELED", "conflict");
  await merges(g, "d_u", "u_d");
  await stops(g, "d_u", "u_u", "ECANCELED", "conflict");
  await checkThenUnmount(g, { d_u: both, u_d: changed(UPDATES, 40, { v: "branch" }) });
});

onEach("siblings: x, s and t into main, each edit once", async (t, engine) => {
  const g = await mounted(t, "siblings", engine);
  await merges(g, "main", "x", "fast-forward");
  await merges(g, "main", "s");
  await merges(g, "main", "t");
  const all = changed(changed(changed(rows(0, 10), 1, { v: "x" }), 2, { v: "s" }), 3, { v: "t" });
  await checkThenUnmount(g, { main: all, x: changed(rows(0, 10), 1, { v: "x" }) });
});

onEach("siblings: several sources in one command are one after the other or refused, never half", async (t, engine) => {
  const g = await mounted(t, "siblings", engine);
  const all = changed(changed(rows(0, 10), 1, { v: "x" }), 2, { v: "s" });
  // One version for all sources is what the interface promises; a refusal says that it is not due yet.
  const before = tip(g.ds),
    r = await ctl(control(g, "main"), "x s");
  if (r.code === 0) return checkThenUnmount(g, { main: all });
  assert.ok(["EINVAL", "EOPNOTSUPP"].includes(r.errno), r.stderr);
  assert.equal(tip(g.ds), before);
  await checkThenUnmount(g, { main: rows(0, 10) });
});

for (const order of [
  ["del", "ins"],
  ["ins", "del"],
]) {
  onEach(`C48 ${order.join(" then ")}: row 5 is there once`, async (t, engine) => {
    const g = await mounted(t, "siblings", engine);
    await merges(g, "main", order[0], "fast-forward");
    await merges(g, "main", order[1]);
    await checkThenUnmount(g, { main: rows(0, 10) }); // the copy that ins appended equals the row that del deleted
  });
}

const THIRTY = rows(0, 30);
onEach(
  "whole_fragments gone: a fragment without rows leaves, whatever the other side deleted in it",
  async (t, engine) => {
    const g = await mounted(t, "whole_fragments", engine);
    const both = without(THIRTY, span(10, 19), 25);
    await merges(g, "main", "gone");
    assert.deepEqual(
      load(g.ds).fragments.map((f) => f.id),
      [0, 2],
    );
    await merges(g, "gone", "main", "fast-forward");
    await checkThenUnmount(g, { main: both, gone: both });
  },
);

onEach("whole_fragments gone the other way round: main into gone", async (t, engine) => {
  const g = await mounted(t, "whole_fragments", engine);
  await merges(g, "gone", "main");
  await checkThenUnmount(g, { main: without(THIRTY, 11, 12, 25), gone: without(THIRTY, span(10, 19), 25) });
});

onEach("whole_fragments empty: a branch that deleted everything and appended", async (t, engine) => {
  const g = await mounted(t, "whole_fragments", engine);
  await merges(g, "main", "empty");
  await checkTip(g, "main", rows(900, 2, "e"));
  await merges(g, "main", "gone", "empty-merge"); // what gone deleted is not there any more: the lineage alone is new
  await checkThenUnmount(g, { main: rows(900, 2, "e") });
});

onEach("whole_fragments blank: a table that had no rows", async (t, engine) => {
  const g = await mounted(t, "whole_fragments", engine, { generated: { name: "blank" } });
  await checkTip(g, "main", []);
  await merges(g, "main", "feature", "fast-forward");
  await checkThenUnmount(g, { main: [{ id: 1 }], feature: [{ id: 1 }] });
});

// addel ends as the base does; back rewrote row 3 twice; twice deleted what main deleted; none has no commits
const NINE = without(rows(0, 10), 5);
onEach("C36 net_zero: branches whose commits cancel out merge, and are merged", async (t, engine) => {
  const g = await mounted(t, "net_zero", engine);
  for (const branch of ["addel", "back", "twice"]) {
    await merges(g, "main", branch, ["merged", "empty-merge"]);
    await checkTip(g, "main", NINE);
    await merges(g, "main", branch, "up-to-date");
  }
  await merges(g, "main", "none", "up-to-date");
  await stock[engine].op(g.ds, "twice", "add", { rows: rows(70, 1, "o") });
  await merges(g, "main", "twice");
  await checkThenUnmount(g, { main: [...NINE, ...rows(70, 1, "o")] });
});

onEach("C13 v1_names: the old naming scheme is kept, the newest version is the greatest number", async (t, engine) => {
  const g = await mounted(t, "v1_names", engine);
  await merges(g, "main", "feature", "fast-forward");
  const m = load(g.ds),
    all = [...rows(0, 12), ...rows(100, 1, "f")];
  assert.equal(m.name, "13.manifest");
  await merges(g, "feature", "main", NOTHING_NEW);
  await stock[engine].op(g.ds, "main", "add", { rows: rows(200, 1) });
  await merges(g, "feature", "main", "fast-forward");
  await checkThenUnmount(g, { main: [...all, ...rows(200, 1)], feature: [...all, ...rows(200, 1)] });
});
