// SPDX-License-Identifier: Apache-2.0
// revert takes back what one version changed and keeps what came later; undo takes back merges with their lineage, so
// that they can be made again.
import assert from "node:assert/strict";
import { load, tip } from "../interop/manifest.mjs";
import { changed, plus, rows, span, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, revert, revertFails, scratch, undo, undoFails } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);
const two = (t, engine) => scratch(t, engine, rows(0, 10), rows(10, 10)); // version 2

// --- revert ---

// One commit (version 3) on the twenty rows, and the twenty rows again.
const COMMITS = {
  append: ["add", { rows: rows(100, 3, "x") }],
  delete: ["delete", { where: "id IN (1, 2, 15)" }],
  "delete of a whole fragment": ["delete", { where: "id < 10" }],
  "delete of everything": ["delete", { where: "true" }],
  update: ["update", { where: "id IN (3, 13)", values: { v: "up" } }],
  upsert: ["mergeInsert", { on: "id", rows: [{ id: 4, v: "in", n: 1 }, { id: 50, v: "in", n: 2 }] }],
  "added column": ["addColumn", { name: "a", sql: "n + 1" }],
  rename: ["alter", { path: "v", rename: "text" }],
};
for (const [what, [op, args]] of Object.entries(COMMITS))
  onEach(`revert of the newest commit: ${what}; once, and then there is nothing left of it`, async (t, engine) => {
    const g = await two(t, engine);
    await g.op("main", op, args);
    await revert(g, "main", "3");
    await checkTip(g, "main", TWENTY);
    await revert(g, "main", "3", "up-to-date");
    await g.op("main", "add", { rows: rows(300, 1) });
    await checkThenUnmount(g, { main: [...TWENTY, ...rows(300, 1)] });
  });

onEach("revert of an older commit: what came later stays", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "delete", { where: "id IN (1, 2, 15)" }); // 3
  await g.op("main", "add", { rows: rows(100, 3, "x") }); // 4
  await g.op("main", "update", { where: "id IN (4, 101)", values: { v: "up" } }); // 5
  await g.op("main", "delete", { where: "id IN (5, 102)" }); // 6
  await revert(g, "main", "main@3");
  const up = changed([...TWENTY, ...rows(100, 3, "x")], [4, 101], { v: "up" });
  await checkTip(g, "main", without(up, 5, 102));
  await revert(g, "main", "6");
  await checkThenUnmount(g, { main: up });
});

onEach("a column added after a delete has no values for the rows that a revert would bring back", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "addColumn", { name: "a", sql: "n + 1" }); // 3
  await g.op("main", "delete", { where: "id IN (1, 2)" }); // 4
  await g.op("main", "addColumn", { name: "b", sql: "n * 2" }); // 5
  await g.op("main", "delete", { where: "id = 3" }); // 6
  await revertFails(g, "main", "4", ["EOPNOTSUPP", "ECANCELED"], ["refused", "conflict"]);
  await checkTip(g, "main", plus(without(TWENTY, 1, 2, 3), (r) => ({ a: r.n + 1, b: r.n * 2 })));
  await revert(g, "main", "5");
  await revert(g, "main", "6");
  await revert(g, "main", "4");
  await checkThenUnmount(g, { main: plus(TWENTY, (r) => ({ a: r.n + 1 })) });
});

onEach("revert of a commit whose rows changed later is a conflict", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "update", { where: "id = 3", values: { v: "one" } }); // 3
  await g.op("main", "update", { where: "id = 3", values: { v: "two" } }); // 4
  await g.op("main", "add", { rows: rows(100, 2, "x") }); // 5
  await g.op("main", "update", { where: "id = 100", values: { v: "up" } }); // 6
  await revertFails(g, "main", "3", "ECANCELED", "conflict");
  await revertFails(g, "main", "5", "ECANCELED", "conflict");
  await revert(g, "main", "6");
  await revert(g, "main", "5");
  await revert(g, "main", "4");
  await checkTip(g, "main", changed(TWENTY, 3, { v: "one" }));
  await revert(g, "main", "3");
  await checkThenUnmount(g, { main: TWENTY });
});

onEach("revert of an update whose row was deleted later is a conflict: it would come back", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "update", { where: "id = 3", values: { v: "up" } }); // 3
  await g.op("main", "delete", { where: "id = 3" }); // 4
  await revertFails(g, "main", "3", "ECANCELED", "conflict");
  await revert(g, "main", "4");
  await revert(g, "main", "3");
  await checkThenUnmount(g, { main: TWENTY });
});

onEach("revert of a compaction: nothing to do for its rows, and nothing comes back that went since", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "optimize");
  const version = tip(g.storage("main"));
  await g.op("main", "delete", { where: "id = 3" });
  await revertFails(g, "main", `${version}`, "EOPNOTSUPP", "refused");
  await checkThenUnmount(g, { main: without(TWENTY, 3) });
});

onEach("revert of a revert brings the commit back", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "delete", { where: "id < 12" }); // 3
  await g.op("main", "add", { rows: rows(100, 1) }); // 4
  await revert(g, "main", "3"); // 5
  await checkTip(g, "main", [...TWENTY, ...rows(100, 1)]);
  await revert(g, "main", "5");
  await checkThenUnmount(g, { main: [...without(TWENTY, span(0, 11)), ...rows(100, 1)] });
});

onEach("revert of a merge and of a pick: their rows go, the target's stay; the lineage stays", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 3, "f") }); // f@3
  await g.op("f", "delete", { where: "id = 7" }); // f@4
  await g.op("main", "delete", { where: "id = 1" }); // 3
  await pick(g, "main", "f@4"); // 4
  await merge(g, "main", "f"); // 5
  await g.op("main", "add", { rows: rows(200, 1, "m") }); // 6
  const merged = [...without(TWENTY, 1, 7), ...rows(100, 3, "f"), ...rows(200, 1, "m")];
  await checkTip(g, "main", merged);
  await revert(g, "main", "5");
  await checkTip(g, "main", without(merged, 100, 101, 102));
  await merge(g, "main", "f", "up-to-date"); // it was merged, and then taken back on purpose
  await revert(g, "main", "4");
  const kept = [...without(TWENTY, 1), ...rows(200, 1, "m")];
  await checkTip(g, "main", kept);
  await g.op("f", "add", { rows: rows(110, 1, "f") });
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: [...kept, ...rows(110, 1, "f")] });
});

// A column's values stay in the data files after it was dropped, in one of its own or beside others that are still read.
const DROPPED = {
  "in a file of its own": ["a", (g) => g.op("main", "addColumn", { name: "a", sql: "n + 1" })],
  "in a file with others": ["v", () => {}],
};
const SINCE = {
  "nothing": [() => {}, (all) => all],
  "rows appended": [
    (g, lacks) => g.op("main", "add", { rows: lacks(rows(100, 2, "x")) }),
    (all, name) => [...all, ...plus(plus(rows(100, 2, "x"), (r) => ({ a: r.n + 1 })), () => ({ [name]: null }))],
  ],
  "rows deleted": [(g) => g.op("main", "delete", { where: "id IN (2, 13)" }), (all) => without(all, 2, 13)],
  "all compacted": [(g) => g.op("main", "optimize"), (all) => all],
};
for (const [where, [name, begin]] of Object.entries(DROPPED))
  for (const [since, [change, expected]] of Object.entries(SINCE))
    onEach(`revert of a dropped column, ${where}, ${since} since: its values are back`, async (t, engine) => {
      const g = await two(t, engine);
      await begin(g);
      const whole = (table) => (name === "a" ? plus(table, (r) => ({ a: r.n + 1 })) : table),
        lacks = (table) => table.map((r) => Object.fromEntries(Object.entries(r).filter(([k]) => k !== name)));
      await g.op("main", "dropColumns", { names: [name] });
      const dropped = tip(g.ds);
      await change(g, lacks);
      await revert(g, "main", `${dropped}`);
      let all = expected(whole(TWENTY), name);
      if (name === "v") all = lacksA(all);
      await checkTip(g, "main", all);
      await g.op("main", "update", { where: "id = 5", values: { [name]: name === "a" ? 7 : "seven" } }, "lance10");
      await g.op("main", "optimize");
      await checkThenUnmount(g, { main: changed(all, 5, { [name]: name === "a" ? 7 : "seven" }) });
    });
const lacksA = (table) => table.map(({ a: _, ...r }) => r);

onEach("revert of a dropped column whose rows were updated since, or whose name is taken: a conflict", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "dropColumns", { names: ["v"] });
  await g.op("main", "update", { where: "id = 3", values: { n: 99 } });
  const a = await revertFails(g, "main", "3", "ECANCELED", "conflict");
  assert.match(a.text, /row 3 of fragment 0/);
  const without3 = changed(TWENTY, 3, { n: 99, v: null });
  await revert(g, "main", "3 rows=dest-wins");
  await checkTip(g, "main", without3);
  await g.op("main", "dropColumns", { names: ["v"] });
  const again = tip(g.ds);
  await g.op("main", "addColumn", { name: "v", sql: "n + 5" });
  assert.match((await revertFails(g, "main", `${again}`, "ECANCELED", "conflict")).text, /column v/);
  await checkThenUnmount(g, { main: without3.map((r) => ({ ...r, v: r.n + 5 })) });
});

onEach("revert on a branch, then merged: main gets the commits and their taking back", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "delete", { where: "id = 7" }); // 3
  await g.op("f", "add", { rows: rows(100, 3, "f") }); // 4
  await merge(g, "main", "f", "fast-forward");
  await revert(g, "f", "3");
  await g.op("main", "delete", { where: "id = 8" });
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: [...without(TWENTY, 8), ...rows(100, 3, "f")] });
});

onEach("versions that cannot be taken back", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 1) }); // 3
  await revertFails(g, "main", "1", "EINVAL");
  await revertFails(g, "main", "0", ["EINVAL", "ENOENT"]);
  await revertFails(g, "main", "9", "ENOENT");
  await revertFails(g, "f", "2", "EINVAL"); // begins the branch
  await revertFails(g, "f", "4", "ENOENT");
  await revertFails(g, "f", "", ["EINVAL", undefined]);
  await revertFails(g, "f", "3 4", "EINVAL");
  await revertFails(g, "f", "three", "EINVAL");
  await revertFails(g, "f", "3 expect=2", "ESTALE");
  const a = await revert(g, "f", "3 dry-run", "dry-run");
  assert.equal(a.rows, "+0 -1");
  await revert(g, "f", "3");
  await checkThenUnmount(g, { main: TWENTY, f: TWENTY });
});

onEach("revert after a compaction and a clean-up is right, or refused and nothing changed", async (t, engine) => {
  const g = await two(t, engine);
  await g.op("main", "delete", { where: "id = 7" }); // 3
  await g.op("main", "optimize");
  await revertFails(g, "main", "3", ["EOPNOTSUPP", "ECANCELED"], ["refused", "conflict"]);
  await g.op("main", "clean");
  await revertFails(g, "main", "3", ["ENODATA", "ENOENT", "EOPNOTSUPP", "ECANCELED"]);
  await checkThenUnmount(g, { main: without(TWENTY, 7) });
});

// --- undo ---

const vectorOf = (g, branch = "main") => load(g.storage(branch)).metadata["lancefs.vector"];

onEach("undo of a fast-forward, and the merge made again", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await g.op("f", "update", { where: "id = 4", values: { v: "f" } });
  const all = [...changed(TWENTY, 4, { v: "f" }), ...rows(100, 3, "f")];
  await merge(g, "main", "f", "fast-forward");
  await undo(g, "main", "steps=1");
  await checkTip(g, "main", TWENTY);
  await merge(g, "main", "f", ["fast-forward", "merged"]);
  await checkTip(g, "main", all);
  await undo(g, "main", "steps=1");
  await checkTip(g, "main", TWENTY);
  await undoFails(g, "main", "steps=1", "ENOENT");
  await checkThenUnmount(g, { main: TWENTY, f: all });
});

onEach("undo of a true merge: content and lineage as before, later own commits are kept", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await g.op("f", "delete", { where: "id IN (4, 14)" });
  await g.op("main", "delete", { where: "id = 1" });
  const before = vectorOf(g);
  await merge(g, "main", "f");
  assert.notEqual(vectorOf(g), before);
  await g.op("main", "add", { rows: rows(200, 2, "m") });
  await g.op("main", "update", { where: "id = 2", values: { v: "m" } });
  const own = [...changed(without(TWENTY, 1), 2, { v: "m" }), ...rows(200, 2, "m")];
  await undo(g, "main", "steps=1");
  await checkTip(g, "main", own);
  await g.op("f", "add", { rows: rows(110, 1, "f") });
  await merge(g, "main", "f");
  const all = [...without(own, 4, 14), ...rows(100, 3, "f"), ...rows(110, 1, "f")];
  await checkTip(g, "main", all);
  await merge(g, "f", "main", "fast-forward");
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("undo of a merge with columns, and the merge made again", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "addColumn", { name: "b", sql: "n * 2" });
  await g.op("main", "addColumn", { name: "a", sql: "n + 1" });
  await merge(g, "main", "f");
  const all = plus(TWENTY, (r) => ({ a: r.n + 1, b: r.n * 2 }));
  await checkTip(g, "main", all);
  await undo(g, "main", "steps=1");
  await checkTip(g, "main", plus(TWENTY, (r) => ({ a: r.n + 1 })));
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: all });
});

onEach("undo of a merge that brought a compaction, when a column has come since: refused, never nulls", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("main", "optimize");
  await merge(g, "f", "main", "fast-forward");
  await g.op("f", "addColumn", { name: "a", sql: "n + 1" });
  await undoFails(g, "f", "steps=1", "EOPNOTSUPP", "refused");
  await checkThenUnmount(g, { f: plus(TWENTY, (r) => ({ a: r.n + 1 })) });
});

onEach("an undo that is reverted: what it had forgotten is held again, and comes once", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("main", "add", { rows: rows(100, 3) });
  await merge(g, "f", "main", "fast-forward"); // 3
  await undo(g, "f", "steps=1"); // 4
  await checkTip(g, "f", TWENTY);
  await g.op("f", "delete", { where: "id = 1" });
  await revert(g, "f", "4");
  await g.op("main", "optimize");
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: [...without(TWENTY, 1), ...rows(100, 3)] });
});

// main updates row 5; f takes that over and gives it up again, so that row 5 is there as it was.
async function takenBack(t, engine) {
  const g = await scratch(t, engine, rows(0, 10));
  await g.fork("f", "other");
  await g.op("main", "update", { where: "id = 5", values: { v: "main" } });
  await merge(g, "f", "main", "fast-forward");
  await undo(g, "f", "steps=1");
  await checkTip(g, "f", rows(0, 10));
  return g;
}
// One side updated row 5, the other deleted it: never the updated row, as if nobody had deleted it.
async function clashesOnFive(g) {
  for (const [target, source, kind] of [["main", "f", "update-delete"], ["f", "main", "delete-update"]]) {
    const answer = await mergeFails(g, target, source, "ECANCELED", "conflict");
    assert.deepEqual([answer.conflicts, /- kind: (\S+)/.exec(answer.text)[1]], ["1", kind]);
  }
}

onEach("how a row went in a merge that was undone says nothing of how it goes later: by a delete here", async (t, engine) => {
  const g = await takenBack(t, engine);
  await g.op("f", "delete", { where: "id = 5" });
  await clashesOnFive(g);
  await merge(g, "main", "f strategy=source-wins");
  await checkThenUnmount(g, { main: without(rows(0, 10), 5), f: without(rows(0, 10), 5) });
});

onEach("how a row went in a merge that was undone says nothing of how it goes later: by a merge of a delete", async (t, engine) => {
  const g = await takenBack(t, engine);
  await g.op("other", "delete", { where: "id = 5" });
  await merge(g, "f", "other");
  await clashesOnFive(g);
  await merge(g, "f", "main strategy=source-wins");
  await checkThenUnmount(g, { f: changed(rows(0, 10), 5, { v: "main" }), other: without(rows(0, 10), 5) });
});

onEach("how a row went in a merge that was undone says nothing of how it goes later: by a merge of another update", async (t, engine) => {
  const g = await takenBack(t, engine);
  await g.op("other", "update", { where: "id = 5", values: { v: "other" } });
  await merge(g, "f", "other");
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await mergeFails(g, "f", "main", "ECANCELED", "conflict");
  await merge(g, "main", "f strategy=source-wins");
  await checkThenUnmount(g, { main: changed(rows(0, 10), 5, { v: "other" }), f: changed(rows(0, 10), 5, { v: "other" }) });
});

onEach("undone after a strategy had decided: the same merge is the same conflict again", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "update", { where: "id = 3", values: { v: "up" } });
  await g.op("main", "delete", { where: "id = 3" });
  await merge(g, "main", "f rows=dest-wins", ["merged", "empty-merge"]);
  await undo(g, "main", "steps=1", ["merged", "empty-merge"]);
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: without(TWENTY, 3) });
});

onEach("undo of two merges at once, of one, and of the other; more than there are is ENOENT", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f", "h");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("h", "delete", { where: "id IN (3, 13)" });
  await g.op("main", "delete", { where: "id = 1" });
  const own = without(TWENTY, 1),
    all = [...without(own, 3, 13), ...rows(100, 2, "f")];
  await merge(g, "main", "f");
  await merge(g, "main", "h");
  await undoFails(g, "main", "steps=3", "ENOENT");
  await undo(g, "main", "steps=2");
  await checkTip(g, "main", own);
  await undoFails(g, "main", "steps=1", "ENOENT");
  await merge(g, "main", "h");
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  await undo(g, "main", "steps=1"); // f
  await checkTip(g, "main", without(own, 3, 13));
  await undo(g, "main", "steps=1"); // h
  await checkTip(g, "main", own);
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: [...own, ...rows(100, 2, "f")] });
});

onEach("undo where there is no merge, or of the target's rows that changed since", async (t, engine) => {
  const g = await two(t, engine);
  await undoFails(g, "main", "steps=1", "ENOENT");
  await g.fork("f");
  await undoFails(g, "f", "steps=1", "ENOENT");
  await undoFails(g, "main", "steps=0", "EINVAL");
  await undoFails(g, "main", "f", "EINVAL");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("main", "delete", { where: "id = 1" });
  await merge(g, "main", "f");
  await undoFails(g, "main", "steps=1 expect=3", "ESTALE");
  const before = tip(g.ds);
  await undo(g, "main", "steps=1 dry-run", "dry-run");
  assert.equal(tip(g.ds), before);
  await g.op("main", "update", { where: "id = 100", values: { v: "up" } });
  await undoFails(g, "main", "steps=1", "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: [...without(TWENTY, 1), ...changed(rows(100, 2, "f"), 100, { v: "up" })] });
});

onEach("undo on one side after both merged each other: the other side keeps everything", async (t, engine) => {
  const g = await two(t, engine);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("main", "delete", { where: "id = 1" });
  const all = [...without(TWENTY, 1), ...rows(100, 2, "f")];
  await merge(g, "main", "f");
  await merge(g, "f", "main", "fast-forward");
  await undo(g, "main", "steps=1");
  await checkTip(g, "main", without(TWENTY, 1));
  await checkTip(g, "f", all);
  await g.op("f", "delete", { where: "id = 101" });
  await merge(g, "main", "f", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { f: without(all, 101) });
});
