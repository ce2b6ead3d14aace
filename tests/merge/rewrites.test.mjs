// SPDX-License-Identifier: Apache-2.0
// Compaction on one side or both, before or after deletes, updates and appends on either; overwrite and restore. Each
// merge is right to the row, or refused by name with nothing changed; where it must go through the test says so.
import assert from "node:assert/strict";
import { load, tip, versions } from "../interop/manifest.mjs";
import { changed, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, checkTip, mergesOrRefuses, mounted, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, pickFails, scratch, withOps } from "../harness/verbs.mjs";

const SIXTY = rows(0, 60);
const lots = (n) => Array.from({ length: n }, (_, i) => rows(i * 10, 10));
const sixLots = async (t, engine, ...branches) => {
  const g = await scratch(t, engine, ...lots(6));
  await g.fork(...branches);
  return g;
};
const dataFiles = (g, branch) => load(g.storage(branch)).fragments.map((f) => f.files[0].path);

onEach("C28 compaction: both compacted, main deleted after it; both ways", async (t, engine) => {
  const g = withOps(await mounted(t, "compaction", engine));
  await merge(g, "main", "compacted", ["merged", "empty-merge"]);
  await checkTip(g, "main", without(SIXTY, 20));
  await merge(g, "compacted", "main", ["fast-forward", "merged", "up-to-date"]);
  await checkTip(g, "compacted", without(SIXTY, 20));
  await merge(g, "feature", "main");
  const all = [...without(SIXTY, 3, 13, 20, 55), ...rows(500, 2, "f")];
  assert.equal(all.length, 58);
  await checkTip(g, "feature", all);
  await merge(g, "main", "feature", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: all, feature: all });
});

// What each side does, by name; a compaction in any place among deletes.
const DOES = {
  nothing: [],
  compacts: ["optimize"],
  "deletes, compacts": [["delete", { where: "id IN (1, 11, 12, 59)" }, [1, 11, 12, 59]], "optimize"],
  "compacts, deletes": ["optimize", ["delete", { where: "id IN (2, 12, 13, 58)" }, [2, 12, 13, 58]]],
  "deletes, compacts, deletes, appends, compacts": [
    ["delete", { where: "id IN (3, 21)" }, [3, 21]],
    "optimize",
    ["delete", { where: "id IN (4, 12, 22)" }, [4, 12, 22]],
    ["add", { rows: rows(700, 15, "c") }, [], rows(700, 15, "c")],
    "optimize",
  ],
  "deletes a whole fragment, compacts": [["delete", { where: "id >= 20 AND id < 31" }, span(20, 30)], "optimize"],
  "deletes, appends": [
    ["delete", { where: "id IN (1, 12, 22, 30, 59)" }, [1, 12, 22, 30, 59]],
    ["add", { rows: rows(500, 2, "f") }, [], rows(500, 2, "f")],
  ],
};
async function doAll(g, branch, steps) {
  let gone = [],
    more = [];
  for (const step of steps) {
    const [op, args, removed = [], added = []] = [step].flat(1).length === 1 ? [step] : step;
    await g.op(branch, op, args);
    gone = [...gone, ...removed];
    more = [...more, ...added];
  }
  return { gone, more };
}
for (const [ours, theirs] of [
  ["nothing", "deletes, compacts"],
  ["compacts", "deletes, appends"],
  ["deletes, appends", "compacts"],
  ["compacts", "compacts"],
  ["deletes, compacts", "compacts, deletes"],
  ["compacts, deletes", "deletes, compacts"],
  ["deletes, compacts, deletes, appends, compacts", "deletes, appends"],
  ["deletes, appends", "deletes, compacts, deletes, appends, compacts"],
  ["deletes a whole fragment, compacts", "deletes, appends"],
  ["deletes, appends", "deletes a whole fragment, compacts"],
  ["deletes, compacts", "deletes a whole fragment, compacts"],
])
  onEach(`main ${ours}; the branch ${theirs}: only deletes and appends, so it merges, again and back`, async (t, engine) => {
    const g = await sixLots(t, engine, "f");
    const a = await doAll(g, "main", DOES[ours]),
      b = await doAll(g, "f", DOES[theirs]);
    let all = without([...SIXTY, ...a.more, ...b.more], a.gone, b.gone);
    await merge(g, "main", "f", ["merged", "fast-forward", "empty-merge"]);
    await checkTip(g, "main", all);
    await merge(g, "main", "f", "up-to-date");

    await merge(g, "f", "main", ["fast-forward", "merged", "up-to-date"]);
    for (const branch of ["main", "f"]) await g.op(branch, "clean");
    await checkStorage(g, "f", all);
    await g.op("f", "delete", { where: "id IN (7, 40)" });
    await g.op("main", "delete", { where: "id IN (8, 41)" });
    await g.op("main", "optimize");
    all = without(all, 7, 8, 40, 41);
    await merge(g, "f", "main");
    await checkTip(g, "f", all);
    await merge(g, "main", "f", ["fast-forward", "merged"]);
    await checkThenUnmount(g, { main: all, f: all });
  });

onEach("updates of other rows before and after a compaction on either side", async (t, engine) => {
  const g = await sixLots(t, engine, "f");
  await g.op("main", "update", { where: "id = 5", values: { v: "m" } });
  await g.op("main", "optimize");
  await g.op("f", "update", { where: "id IN (6, 35)", values: { v: "f" } });
  await g.op("f", "delete", { where: "id = 7" });
  const all = without(changed(changed(SIXTY, 5, { v: "m" }), [6, 35], { v: "f" }), 7);
  const done = await mergesOrRefuses(g, "main", "f", all);
  assert.equal(done, "merged", "the counts agree, so the rows are mapped");
  await g.op("f", "update", { where: "id = 36", values: { v: "f" } });
  await g.op("f", "optimize");
  await g.op("main", "update", { where: "id = 37", values: { v: "m" } });
  const next = changed(changed(all, 36, { v: "f" }), 37, { v: "m" });
  await mergesOrRefuses(g, "main", "f", next);
  await checkThenUnmount(g, { f: changed(without(changed(SIXTY, [6, 35, 36], { v: "f" }), 7), 36, { v: "f" }) });
});

for (const [compacts, other] of [
  ["main", "f"],
  ["f", "main"],
])
  onEach(`${compacts} updated a row and compacted, ${other} updated or deleted the same row: stopped both ways`, async (t, engine) => {
    const g = await sixLots(t, engine, "f", "h");
    await g.op(compacts, "update", { where: "id = 5", values: { v: "one" } });
    await g.op(compacts, "optimize");
    await g.op(other, "update", { where: "id = 5", values: { v: "two" } });
    await g.op("h", "delete", { where: "id = 5" });
    const one = changed(SIXTY, 5, { v: "one" }),
      two = changed(SIXTY, 5, { v: "two" });
    for (const [target, source] of [
      ["main", "f"],
      ["f", "main"],
      [compacts, "h"],
      ["h", compacts],
    ])
      await mergeFails(g, target, source, ["ECANCELED", "EOPNOTSUPP"], ["conflict", "refused"]);
    await checkThenUnmount(g, { [compacts]: one, [other]: two, h: without(SIXTY, 5) });
  });

onEach("a row updated after the compaction, and the same row deleted on the other side: stopped both ways", async (t, engine) => {
  const g = await sixLots(t, engine, "f");
  await g.op("main", "optimize");
  await g.op("main", "update", { where: "id = 25", values: { v: "late" } });
  await g.op("f", "delete", { where: "id = 25" });
  for (const [target, source] of [
    ["main", "f"],
    ["f", "main"],
  ])
    await mergeFails(g, target, source, ["ECANCELED", "EOPNOTSUPP"], ["conflict", "refused"]);
  await checkThenUnmount(g, { main: changed(SIXTY, 25, { v: "late" }), f: without(SIXTY, 25) });
});

onEach("a compaction that the other side's changes do not touch is kept: its files come along", async (t, engine) => {
  const g = await sixLots(t, engine, "f");
  await g.op("f", "delete", { where: "id < 60 AND id % 2 = 0" });
  await g.op("f", "optimize");
  await g.op("main", "add", { rows: rows(800, 3, "m") });
  await merge(g, "main", "f");
  const compacted = dataFiles(g, "f");
  assert.ok(compacted.length < 6, "it did compact");
  assert.ok(compacted.every((f) => dataFiles(g, "main").includes(f)));
  await checkThenUnmount(g, { main: [...SIXTY.filter((r) => r.id % 2), ...rows(800, 3, "m")] });
});

onEach("a column added here, compaction there: merged right or refused, both ways", async (t, engine) => {
  const g = await sixLots(t, engine, "f", "h");
  await g.op("f", "addColumn", { name: "a", sql: "n + 1" });
  await g.op("main", "delete", { where: "id = 9" });
  await g.op("main", "optimize");
  await g.op("h", "addColumn", { name: "b", sql: "n * 2" });
  await g.op("h", "optimize");
  const all = without(SIXTY, 9).map((r) => ({ ...r, a: r.n + 1 }));
  const withB = SIXTY.map((r) => ({ ...r, b: r.n * 2 }));
  for (const [target, source, expected, before] of [
    ["main", "f", all, without(SIXTY, 9)],
    ["f", "main", all, SIXTY.map((r) => ({ ...r, a: r.n + 1 }))],
    ["h", "main@7", without(withB, 9), withB],
  ]) {
    const done = await mergesOrRefuses(g, target, source, expected);
    if (done === "refused") await checkTip(g, target, before);
  }
  await g.m.unmount();
});

onEach("main's own compaction gives way to a column; a branch made from it goes on: right or refused, both ways", async (t, engine) => {
  const g = await sixLots(t, engine, "f");
  await g.op("f", "addColumn", { name: "a", sql: "n + 1" });
  await g.op("main", "optimize");
  await g.op("main", "fork", { name: "u", from: "main" });
  await g.op("main", "fork", { name: "w", from: "main" });
  await merge(g, "main", "f");
  const all = SIXTY.map((r) => ({ ...r, a: r.n + 1 }));
  await checkTip(g, "main", all);
  await merge(g, "f", "main", ["fast-forward", "up-to-date", "merged"]);
  await checkTip(g, "f", all);
  await g.op("u", "delete", { where: "id IN (5, 25)" }); // in the compacted fragment, which main has no more
  await g.op("w", "update", { where: "id = 35", values: { v: "w" } });
  await mergesOrRefuses(g, "main", "u", without(all, 5, 25));
  await mergesOrRefuses(g, "u", "main", without(all, 5, 25));
  await mergesOrRefuses(g, "w", "f", changed(all, 35, { v: "w", a: null }));
  await g.op("f", "delete", { where: "id = 41" });
  await merge(g, "main", "f", ["fast-forward", "merged"]);
  await g.op("main", "optimize");
  await g.op("main", "clean");
  await g.op("f", "delete", { where: "id = 42" });
  const done = await mergesOrRefuses(g, "main", "f", await rowsWithout(g, "main", 42));
  t.diagnostic(done);
  await g.m.unmount();
});
// The rows that a branch has, less these: for a test that allows two ways there.
async function rowsWithout(g, branch, ...ids) {
  const r = await stock[g.engine].read(g.ds, branch);
  return without(r.rows.map((x) => Object.fromEntries(r.columns.map((c, i) => [c, x[i]]))), ids);
}

onEach("an index on the compacted side: filters find what a scan finds, after merges both ways", async (t, engine) => {
  const g = await sixLots(t, engine, "f");
  await g.op("main", "index", { column: "id" });
  await g.op("f", "index", { column: "n" });
  await g.op("main", "optimize");
  await g.op("f", "delete", { where: "id IN (3, 33)" });
  await g.op("f", "add", { rows: rows(500, 3, "f") });
  const all = [...without(SIXTY, 3, 33), ...rows(500, 3, "f")];
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  await checkTip(g, "f", all);
  await g.op("f", "optimize");
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("main", "delete", { where: "id = 4" });
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: without(all, 4, 5), f: without(all, 5) });
});

onEach("compaction and clean-up after each merge, on both sides in turn, five times", async (t, engine) => {
  const g = await sixLots(t, engine, "f");
  let all = SIXTY;
  for (let i = 0; i < 5; i++) {
    const [here, there] = i % 2 ? ["f", "main"] : ["main", "f"];
    await g.op(here, "delete", { where: `id IN (${i}, ${10 + i})` });
    await g.op(there, "add", { rows: rows(100 + i, 1, "x") });
    await g.op(here, "optimize");
    all = [...without(all, i, 10 + i), ...rows(100 + i, 1, "x")];
    await merge(g, here, there);
    await checkTip(g, here, all, { view: false });
    await merge(g, there, here, ["fast-forward", "merged"]);
    await g.op(there, "clean");
    await checkTip(g, there, all, { view: false });
  }
  await checkThenUnmount(g, { main: all, f: all });
});

// --- the branch's history is gone ---

onEach("C25 cleaned: a branch without its history is refused by name; one that has it merges", async (t, engine) => {
  const g = await mounted(t, "cleaned", engine),
    before = (await stock[engine].read(g.ds, "main")).rows;
  const a = await mergeFails(g, "main", "late", ["EOPNOTSUPP", "ENODATA"], ["refused", "error"]);
  assert.match(a.text, /late/, "it says whose history is missing");
  assert.match(a.text, /cleaned|gone|missing/i, "and that it is");
  assert.deepEqual((await stock[engine].read(g.ds, "main")).rows, before);
  await merge(g, "main", "early", ["merged", "fast-forward"]);
  const all = (await stock[engine].read(g.ds, "main")).rows;
  assert.equal(all.length, 25);
  assert.equal(new Set(all.map(([id]) => id)).size, 25, "no row twice");
  await g.m.unmount();
});

// --- overwrite and restore ---

const MAIN_OW = [...rows(0, 20), ...rows(20, 1, "m")];
const OVERWRITTEN = [...rows(700, 4, "o"), ...rows(710, 1, "o")];

// Over all versions of the branch: no fragment id has two data files, and the highest id never falls.
function namesOneFile(dir) {
  const files = new Map();
  let highest = -1;
  for (const v of versions(dir)) {
    const m = load(dir, v);
    assert.ok((m.maxFragment ?? -1) >= highest, `version ${v}: max_fragment_id ${m.maxFragment} after ${highest}`);
    highest = m.maxFragment ?? -1;
    for (const f of m.fragments) {
      const is = f.files[0].path,
        was = files.get(f.id) ?? is;
      assert.equal(is, was, `version ${v}: fragment ${f.id}`);
      files.set(f.id, is);
    }
  }
}

onEach("C52 overwrite_restore: overwritten against appended rows is stopped, against nothing it is taken", async (t, engine) => {
  const g = withOps(await mounted(t, "overwrite_restore", engine));
  for (const [target, source] of [
    ["main", "ow"],
    ["ow", "main"],
  ])
    await mergeFails(g, target, source, ["EOPNOTSUPP", "ECANCELED"], ["refused", "conflict"]);
  await checkTip(g, "main", MAIN_OW);
  await g.op("main", "fork", { name: "idle", from: "main", version: 2 });
  await merge(g, "idle", "ow", "fast-forward");
  await checkTip(g, "idle", OVERWRITTEN);
  await g.op("idle", "add", { rows: rows(720, 1) });
  await merge(g, "ow", "idle", "fast-forward");
  await checkThenUnmount(g, { ow: [...OVERWRITTEN, ...rows(720, 1)], main: MAIN_OW });
});

onEach("C52 overwrite_restore: a restored branch brings what it restored, again after a restore of main", async (t, engine) => {
  const g = withOps(await mounted(t, "overwrite_restore", engine));
  await merge(g, "main", "re");
  await checkTip(g, "main", [...MAIN_OW, ...rows(800, 1, "a")]);
  await g.op("main", "add", { rows: rows(30, 1) });
  await g.op("main", "restore", { version: 2 });
  await g.op("main", "add", { rows: rows(31, 1) });
  const restored = [...rows(0, 20), ...rows(31, 1)];
  await checkTip(g, "main", restored);
  const done = await mergesOrRefuses(g, "main", "re", [...restored, ...rows(800, 1, "a")]);
  if (done === "refused") await checkTip(g, "main", restored);
  namesOneFile(g.ds);
  await g.m.unmount();
});

onEach("C69 whole_fragments: a fragment gone on one side, deleted from on the other, compacted on a third", async (t, engine) => {
  const g = withOps(await mounted(t, "whole_fragments", engine));
  await g.op("main", "fork", { name: "third", from: "main", version: 3 });
  await g.op("third", "delete", { where: "id = 13" });
  await g.op("third", "optimize");
  const all = without(rows(0, 30), span(10, 19), 25);
  await merge(g, "main", "gone");
  await checkTip(g, "main", all);
  const done = await mergesOrRefuses(g, "main", "third", all);
  if (done === "refused") await checkTip(g, "main", all);
  await checkThenUnmount(g, { main: all });
});
