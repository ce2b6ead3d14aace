// SPDX-License-Identifier: Apache-2.0
// Cherry-pick: one commit of any kind, a range as one version, the same one twice, and merges of the whole branch after.
import assert from "node:assert/strict";
import { tip } from "../interop/manifest.mjs";
import { changed, plus, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mergesOrRefuses, mounted, onEach } from "../harness/tip.mjs";
import { branchOfFive, merge, mergeFails, pick, pickFails, revert, scratch, undo, withOps } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);

const A = (r) => ({ a: r.n + 1 });
const WHOLE = plus(
  [...changed(without(TWENTY, 5), 12, { v: "up" }), ...rows(100, 3, "f"), ...rows(110, 1, "f")],
  A,
);

// What each commit makes of the twenty rows of main, alone.
const COMMITS = {
  3: ["an append", [...TWENTY, ...rows(100, 3, "f")]],
  4: ["a delete", without(TWENTY, 5)],
  5: ["an update", changed(TWENTY, 12, { v: "up" })],
  6: ["a later append", [...TWENTY, ...rows(110, 1, "f")]],
};
for (const [version, [what, alone]] of Object.entries(COMMITS))
  onEach(`${what} is picked alone, once, and the whole branch merges after it`, async (t, engine) => {
    const g = await branchOfFive(t, engine);
    const a = await pick(g, "main", `f@${version}`);
    assert.equal(a.source, `f@${version}`);
    await checkTip(g, "main", alone);
    await pick(g, "main", `f@${version}`, "up-to-date");
    await merge(g, "main", "f");
    await checkTip(g, "main", WHOLE);
    await pick(g, "main", `f@${version}`, "up-to-date");
    await merge(g, "main", "f", "up-to-date");
    await merge(g, "f", "main", ["fast-forward", "up-to-date"]);
    await checkThenUnmount(g, { main: WHOLE, f: WHOLE });
  });

onEach("every commit is picked, one by one in any order, then the branch merges without a row twice", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  let all = TWENTY;
  for (const [version, next] of [
    [6, (x) => [...x, ...rows(110, 1, "f")]],
    [5, (x) => changed(x, 12, { v: "up" })],
    [3, (x) => [...x, ...rows(100, 3, "f")]],
    [4, (x) => without(x, 5)],
  ]) {
    await pick(g, "main", `f@${version}`);
    all = next(all);
    await checkTip(g, "main", all, { view: false });
  }
  await pick(g, "main", "f@7");
  await merge(g, "main", "f", ["merged", "empty-merge"]);
  await merge(g, "f", "main", ["fast-forward", "up-to-date"]);
  await checkThenUnmount(g, { main: WHOLE, f: WHOLE });
});

onEach("an added column is picked where its rows are the same, and refused where rows live that it has no values for", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  const a = await pickFails(g, "main", "f@7", ["EOPNOTSUPP", "ECANCELED"], ["refused", "conflict"]);
  assert.match(a.text, /fragment \d/, "rows 5 and 12 were deleted when the column was made");
  await pick(g, "main", "f@4");
  await pick(g, "main", "f@5");
  await pick(g, "main", "f@7");
  const all = plus(changed(without(TWENTY, 5), 12, { v: "up" }), A);
  await checkTip(g, "main", all);
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: WHOLE, f: WHOLE });
});

onEach("commits behind an added column, picked without it: their rows come, the column with the merge", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "addColumn", { name: "a", sql: "n + 1" }); // 3
  await g.op("f", "add", { rows: plus(rows(100, 2, "f"), () => ({ a: 5 })) }); // 4
  await g.op("f", "update", { where: "id = 7", values: { v: "up" } }); // 5
  await pick(g, "main", "f@4");
  await checkTip(g, "main", [...TWENTY, ...rows(100, 2, "f")]);
  await pick(g, "main", "f@5");
  await checkTip(g, "main", [...changed(TWENTY, 7, { v: "up" }), ...rows(100, 2, "f")]);
  const all = [...plus(changed(TWENTY, 7, { v: "up" }), A), ...plus(rows(100, 2, "f"), () => ({ a: 5 }))];
  await merge(g, "main", "f");
  await merge(g, "f", "main", ["up-to-date", "fast-forward", "empty-merge"]); // it has all of that
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("a range with squash is one version, once, and no part of it comes again by itself", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  const before = tip(g.ds);
  await pick(g, "main", "f@4..5 squash");
  assert.equal(tip(g.ds), before + 1);
  const middle = changed(without(TWENTY, 5), 12, { v: "up" });
  await checkTip(g, "main", middle);
  await pick(g, "main", "f@4..5 squash", "up-to-date");
  await pick(g, "main", "f@4", "up-to-date");
  await pick(g, "main", "f@5", "up-to-date");
  await pick(g, "main", "f@3");
  await checkThenUnmount(g, { main: [...middle, ...rows(100, 3, "f")], f: WHOLE });
});

onEach("a squashed range, then the whole branch merges without a false conflict", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@3..6 squash");
  await checkTip(g, "main", WHOLE.map(({ a, ...r }) => r));
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: WHOLE, f: WHOLE });
});

onEach("a range of which part was picked before: the rest of it comes", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@4..5 squash");
  await pick(g, "main", "f@3..f@6 squash");
  await checkThenUnmount(g, { main: WHOLE.map(({ a, ...r }) => r) });
});

onEach("picked, then both sides go on: what came is deleted here and updated there as if merged", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@3");
  await g.op("main", "delete", { where: "id = 100" });
  await g.op("f", "update", { where: "id = 101", values: { v: "later" } });
  await merge(g, "main", "f");
  const all = changed(without(WHOLE, 100), 101, { v: "later" });
  await checkTip(g, "main", all);
  await merge(g, "f", "main", "fast-forward");
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("picked, then the same picked row is changed on both sides: a conflict, as it must be", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@3");
  await g.op("main", "update", { where: "id = 100", values: { v: "mine" } });
  await g.op("f", "update", { where: "id = 100", values: { v: "theirs" } });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await checkThenUnmount(g, { main: [...TWENTY, ...changed(rows(100, 3, "f"), 100, { v: "mine" })] });
});

onEach("a pick that clashes with the target's own commit is a conflict that names the row", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "update", { where: "id IN (5, 12)", values: { v: "mine" } });
  const mine = changed(TWENTY, [5, 12], { v: "mine" });
  for (const ref of ["f@4", "f@5", "f@4..6 squash"]) {
    const a = await pickFails(g, "main", ref, "ECANCELED", "conflict");
    assert.match(a.text, /unit: "?row \d+ of fragment/);
  }
  await pick(g, "main", "f@6"); // the others go
  await checkThenUnmount(g, { main: [...mine, ...rows(110, 1, "f")] });
});

onEach("refs that cannot be picked", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pickFails(g, "main", "f@2", "EINVAL"); // begins the branch
  await pickFails(g, "main", "f@2..4 squash", "EINVAL");
  await pickFails(g, "main", "f@1", ["EINVAL", "ENOENT"]);
  await pickFails(g, "main", "f@8", "ENOENT");
  await pickFails(g, "main", "f@3..99 squash", "ENOENT");
  await pickFails(g, "main", "none@3", "ENOENT");
  await pickFails(g, "main", "f@5..4 squash", "EINVAL");
  await pickFails(g, "main", "f@3..main@2 squash", "EINVAL");
  await pickFails(g, "main", "f@3 f@4", "EINVAL");
  await pickFails(g, "main", "f@3 expect=1", "ESTALE");
  await checkThenUnmount(g, { main: TWENTY, f: WHOLE });
});

onEach("dry-run of a pick writes nothing and says what would be", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  const before = tip(g.ds);
  const a = await pick(g, "main", "f@3 dry-run", "dry-run");
  assert.equal(a.rows, "+3 -0");
  assert.equal(tip(g.ds), before);
  await checkThenUnmount(g, { main: TWENTY });
});

onEach("from main into a branch, and from a sibling: ids of fragments are given anew", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.fork("h");
  await g.op("main", "add", { rows: rows(200, 2, "m") });
  await g.op("main", "delete", { where: "id = 1" });
  await pick(g, "f", "main@3");
  await checkTip(g, "f", [...WHOLE, ...plus(rows(200, 2, "m"), () => ({ a: null }))]);
  await pick(g, "h", "main"); // its newest commit
  await checkTip(g, "h", without(TWENTY, 1));
  await pick(g, "h", "f@3");
  const h = [...without(TWENTY, 1), ...rows(100, 3, "f")];
  await checkTip(g, "h", h);
  await merge(g, "main", "h");
  const main = [...h, ...rows(200, 2, "m")];
  await checkTip(g, "main", main);
  await merge(g, "main", "f");
  const all = [...without(WHOLE, 1), ...plus(rows(200, 2, "m"), () => ({ a: null }))];
  await checkThenUnmount(g, { main: all, h });
});

onEach("what was picked and is deleted whole on either side since stays deleted after the merge", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@6");
  await g.op("f", "delete", { where: "id = 110" });
  await pick(g, "main", "f@3");
  await g.op("main", "delete", { where: "id IN (100, 101, 102)" });
  await merge(g, "main", "f");
  const all = without(WHOLE, 110, 100, 101, 102);
  await checkTip(g, "main", all);
  await merge(g, "f", "main", "fast-forward");
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("picked and compacted there: rows come once, deletes on the other side reach them", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@3");
  await pick(g, "main", "f@6");
  await g.op("main", "delete", { where: "id = 0" });
  await g.op("main", "optimize");
  await g.op("f", "delete", { where: "id IN (101, 110)" });
  const all = without(WHOLE, 0, 101, 110);
  const done = await mergesOrRefuses(g, "main", "f", all);
  if (done === "refused") await checkTip(g, "main", without([...TWENTY, ...rows(100, 3, "f"), ...rows(110, 1, "f")], 0));
  await g.m.unmount();
});

onEach("a pick of what the target did itself: the same rows deleted are no conflict", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "delete", { where: "id IN (5, 6)" });
  await pick(g, "main", "f@4", ["merged", "empty-merge", "up-to-date"]);
  await checkTip(g, "main", without(TWENTY, 5, 6));
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: without(WHOLE, 6) });
});

onEach("C40 add_columns: score merged, or picked commit by commit, gives the same table", async (t, engine) => {
  const g = withOps(await mounted(t, "add_columns", engine));
  const all = [
    ...plus(without(rows(0, 100), 60), (r) => ({ label: `L${r.v}`, score: r.n * 2 })),
    { id: 900, v: "s", n: 1, label: null, score: 5 },
  ];
  await g.op("main", "fork", { name: "twin", from: "main" });
  await merge(g, "twin", "score");
  await pick(g, "main", "score@3");
  await pick(g, "main", "score@4");
  await checkTip(g, "main", all);
  await checkTip(g, "twin", all);
  await merge(g, "main", "score", ["merged", "empty-merge"]);
  await merge(g, "main", "twin", ["merged", "empty-merge", "fast-forward"]);
  await checkThenUnmount(g, { main: all, twin: all });
});

onEach("C52 overwrite_restore: a pick of an overwrite is refused, of the append behind it is taken", async (t, engine) => {
  const g = withOps(await mounted(t, "overwrite_restore", engine));
  const main = [...rows(0, 20), ...rows(20, 1, "m")];
  await pickFails(g, "main", "ow@3", ["EOPNOTSUPP", "ECANCELED"], ["refused", "conflict"]);
  await checkTip(g, "main", main);
  await pick(g, "main", "ow@4");
  await checkThenUnmount(g, { main: [...main, ...rows(710, 1, "o")] });
});

onEach("picked from a branch whose rows moved by compaction meanwhile", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("f", "optimize");
  await pick(g, "main", "f@4");
  await pick(g, "main", "f@3");
  const some = [...without(TWENTY, 5), ...rows(100, 3, "f")];
  await checkTip(g, "main", some);
  await merge(g, "f", "main", ["merged", "empty-merge"]);
  await checkTip(g, "f", WHOLE);
  await merge(g, "main", "f", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { main: WHOLE, f: WHOLE });
});

onEach("a merge commit is picked: what it brought to that branch comes, and is not brought again", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.fork("h", "k");
  await g.op("h", "add", { rows: rows(300, 2, "h") });
  await merge(g, "h", "f");
  await pick(g, "k", `h@${tip(g.storage("h"))}`);
  await checkTip(g, "k", WHOLE);
  await merge(g, "k", "h");
  const all = [...WHOLE, ...plus(rows(300, 2, "h"), () => ({ a: null }))];
  await checkThenUnmount(g, { k: all, h: all });
});

onEach("a delete behind a compaction that the target has not takes that row where it stands there", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "optimize");
  await g.op("f", "delete", { where: "id = 5" });
  await pick(g, "main", `f@${tip(g.storage("f"))}`);
  await checkTip(g, "main", without(TWENTY, 5));
  await merge(g, "main", "f", ["merged", "empty-merge"]);
  await checkThenUnmount(g, { main: without(TWENTY, 5) });
});

onEach("a delete of a row that the target holds as it was before is a conflict", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "update", { where: "id = 3", values: { v: "up" } }); // 3
  await g.op("f", "delete", { where: "id = 3" }); // 4
  await pickFails(g, "main", "f@4", "ECANCELED", "conflict");
  await pick(g, "main", "f@3..4 squash");
  await checkThenUnmount(g, { main: without(TWENTY, 3) });
});

onEach("of a range, what the target holds already is left out: its taking back comes", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 3, "f") }); // 3
  await merge(g, "main", "f", "fast-forward");
  await revert(g, "f", "3"); // 4
  await g.op("f", "add", { rows: rows(110, 1, "f") }); // 5
  const a = await pick(g, "main", "f@3..5 squash");
  assert.equal(a.source, "f@4..5");
  await checkThenUnmount(g, { main: [...TWENTY, ...rows(110, 1, "f")] });
});

onEach("rows that only the target has are kept when the picked commit removes the rest of their fragment", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "delete", { where: "id < 8" }); // 3
  await g.op("f", "update", { where: "id < 10", values: { v: "up" } }); // 4: nothing of the first fragment is left
  await pick(g, "main", "f@4");
  await checkThenUnmount(g, { main: changed(TWENTY, [8, 9], { v: "up" }) });
});

// Rows that a pick brought stand in one file on both sides, until a compaction takes them along, here or there.
for (const who of [["f"], ["main"], ["f", "main"]])
  for (const gone of [[], [101, 102]])
    onEach(
      `picked, compacted by ${who.join(" and ")}${gone.length ? ", some of them deleted" : ""}, and merged: every row once`,
      async (t, engine) => {
        const g = await scratch(t, engine, rows(0, 10), rows(10, 2));
        await g.fork("f");
        await g.op("main", "add", { rows: rows(100, 4, "m") });
        await g.op("main", "mergeInsert", { on: "id", rows: [{ id: 11, v: "in", n: 1 }, { id: 50, v: "in", n: 2 }] });
        await pick(g, "f", "main@3..4 squash");
        if (gone.length) await g.op("f", "delete", { where: `id IN (${gone})` });
        await g.op("f", "add", { rows: rows(200, 2, "f") });
        await g.op("main", "add", { rows: rows(300, 2, "m") });
        for (const branch of who) await g.op(branch, "optimize");
        await merge(g, "main", "f");
        const all = [...rows(0, 11), { id: 11, v: "in", n: 1 }, { id: 50, v: "in", n: 2 }, ...rows(100, 4, "m"), ...rows(200, 2, "f"), ...rows(300, 2, "m")];
        await checkThenUnmount(g, { main: without(all, ...gone) });
      },
    );

onEach("picked, compacted, and its history cleaned away: what nobody can tell apart is not merged", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 2));
  await g.fork("f");
  await g.op("main", "add", { rows: rows(100, 4, "m") });
  await pick(g, "f", "main@3");
  await g.op("f", "add", { rows: rows(200, 2, "f") });
  await g.op("f", "clean"); // compacts, too
  await mergeFails(g, "main", "f", "EOPNOTSUPP", "refused");
  await g.op("main", "optimize");
  await mergeFails(g, "main", "f", "EOPNOTSUPP", "refused");
  await checkThenUnmount(g, { main: [...rows(0, 12), ...rows(100, 4, "m")] });
});

// x holds rows that it picked from f; main gets f by a merge, which had done something with those rows on its way.
const SINCE = {
  updated: [(g) => g.op("f", "update", { where: "id >= 100", values: { v: "up" } }), changed(rows(100, 2, "f"), [100, 101], { v: "up" })],
  deleted: [(g) => g.op("f", "delete", { where: "id >= 100" }), []],
  "deleted in part": [(g) => g.op("f", "delete", { where: "id = 100" }), rows(101, 1, "f")],
  compacted: [(g) => g.op("f", "optimize"), rows(100, 2, "f")],
};
for (const [how, [act, left]] of Object.entries(SINCE)) {
  const pickedEarlier = async (t, engine) => {
    const g = await scratch(t, engine, rows(0, 5), rows(5, 5));
    await g.fork("f", "x");
    await g.op("f", "add", { rows: rows(100, 2, "f") });
    await pick(g, "x", `f@${tip(g.storage("f"))}`);
    await g.op("x", "add", { rows: rows(200, 1, "x") });
    await act(g);
    await g.op("f", "add", { rows: rows(150, 1, "f") });
    await merge(g, "main", "f", "fast-forward");
    return g;
  };

  onEach(`rows that were picked, and ${how} before main got them from where they were picked, stand once`, async (t, engine) => {
    const g = await pickedEarlier(t, engine),
      all = [...rows(0, 10), ...left, ...rows(150, 1, "f"), ...rows(200, 1, "x")];
    await merge(g, "main", "x");
    await checkTip(g, "main", all);
    await merge(g, "x", "main", ["merged", "fast-forward", "empty-merge"]);
    await checkThenUnmount(g, { main: all, x: all });
  });

  for (const again of [false, true])
    onEach(`the same, ${how}, where main has taken its merge back${again ? " and made again" : ""}`, async (t, engine) => {
      const g = await pickedEarlier(t, engine),
        all = [...rows(0, 10), ...left, ...rows(150, 1, "f"), ...rows(200, 1, "x")];
      await undo(g, "main", "steps=1");
      if (again) await merge(g, "main", "f", ["merged", "fast-forward"]);
      await merge(g, "main", "x");
      // What f did later is not in main, so the picked rows come as they were picked.
      if (!again) await checkTip(g, "main", [...rows(0, 10), ...rows(100, 2, "f"), ...rows(200, 1, "x")]);
      await merge(g, "main", "f", again ? ["up-to-date"] : ["merged", "empty-merge"]);
      await checkThenUnmount(g, { main: all });
    });
}

onEach("what is picked from a branch that has compacted what the target holds, and has merged the target, takes no other row away", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("f", "add", { rows: rows(110, 2, "f") });
  await g.op("main", "optimize");
  await merge(g, "main", `f@${tip(g.storage("f")) - 1}`);
  await merge(g, "main", "f");
  await revert(g, "main", String(tip(g.storage("main"))));
  await pick(g, "f", `main@${tip(g.storage("main"))}`);
  const some = [...TWENTY, ...rows(100, 2, "f")];
  await checkTip(g, "f", some);
  await g.op("main", "add", { rows: rows(300, 1, "m") });
  await pick(g, "f", `main@${tip(g.storage("main"))}`);
  await merge(g, "f", "main", ["merged", "empty-merge"]);
  await checkThenUnmount(g, { main: [...some, ...rows(300, 1, "m")], f: [...some, ...rows(300, 1, "m")] });
});

onEach("a merge is picked whose source has compacted rows that the target holds by a merge of its own: they come once", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "x");
  await g.op("x", "add", { rows: rows(100, 3, "x") });
  await merge(g, "main", "x", "fast-forward");
  await g.op("f", "add", { rows: rows(200, 1, "f") });
  await merge(g, "main", "f");
  await g.op("main", "delete", { where: "id = 101" });
  await g.op("x", "optimize");
  await g.op("f", "delete", { where: "id = 5" });
  await merge(g, "main", "f");
  await merge(g, "f", "x");
  await pick(g, "main", `f@${tip(g.storage("f"))}`, ["merged", "empty-merge", "up-to-date"]);
  const all = [...without(TWENTY, 5), ...without(rows(100, 3, "x"), 101), ...rows(200, 1, "f")];
  await checkTip(g, "main", all);
  await mergesOrRefuses(g, "main", "f", all); // what of the compaction main holds by the pick cannot be told
  await checkThenUnmount(g, { main: all });
});
