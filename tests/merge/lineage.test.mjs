// SPDX-License-Identifier: Apache-2.0
// Lineage: branches of branches, merging again after more commits, merges among siblings, and what stock Lance cleans up.
import assert from "node:assert/strict";
import { load } from "../interop/manifest.mjs";
import { OVERLAP, changed, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, checkTip, merges, mergesOrRefuses, mounted, NOTHING_NEW, onEach } from "../harness/tip.mjs";

// chain: main -> feature -> exp/sub -> exp/sub/deep; old from main@1; idle from feature without commits
const MAIN = [...rows(0, 10), ...rows(10, 1, "m")];
const FEATURE = [...without(rows(0, 10), 1), ...rows(100, 2, "f")];
const SUB = [...without(FEATURE, 100), ...rows(200, 2, "s")];
const DEEP = [...without(SUB, 6), ...rows(300, 2, "d")];
const OLD = [...rows(0, 5), ...rows(400, 1, "o")];
const MAIN_AND_DEEP = [...DEEP, ...rows(10, 1, "m")];

onEach("C18 chain: exp/sub/deep into main, then its ancestors are contained", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  assert.deepEqual(
    [MAIN, FEATURE, SUB, DEEP, OLD, MAIN_AND_DEEP].map((x) => x.length),
    [11, 11, 12, 13, 6, 14],
  );
  await checkTip(g, "exp/sub/deep", DEEP);
  await merges(g, "main", "exp/sub/deep");
  await checkTip(g, "main", MAIN_AND_DEEP);
  for (const ancestor of ["feature", "exp/sub", "idle"]) await merges(g, "main", ancestor, "up-to-date");
  await merges(g, "main", "old");
  const all = [...MAIN_AND_DEEP, ...rows(400, 1, "o")];
  for (const f of load(g.ds).fragments.slice(0, 1))
    assert.equal(f.files[0].base, undefined, "the target's own file has no base id");
  await checkThenUnmount(g, { main: all, "exp/sub/deep": DEEP, old: OLD });
});

onEach("chain: ancestors one by one, oldest first", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  await merges(g, "main", "feature");
  await checkTip(g, "main", [...FEATURE, ...rows(10, 1, "m")]);
  await merges(g, "main", "exp/sub");
  await checkTip(g, "main", [...SUB, ...rows(10, 1, "m")]);
  await merges(g, "main", "exp/sub/deep");
  await checkThenUnmount(g, { main: MAIN_AND_DEEP });
});

onEach("chain: downwards, main into exp/sub/deep; up along the line by fast-forward", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  await merges(g, "exp/sub", "feature", "up-to-date");
  await merges(g, "feature", "exp/sub", "fast-forward");
  await checkTip(g, "feature", SUB);
  await merges(g, "feature", "exp/sub/deep", ["fast-forward", "merged"]);
  await merges(g, "exp/sub/deep", "main");
  await checkThenUnmount(g, { feature: DEEP, "exp/sub/deep": MAIN_AND_DEEP, main: MAIN, "exp/sub": SUB });
});

onEach("chain: an old version of a branch, by number", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  await merges(g, "main", "feature@3");
  await checkTip(g, "main", [...MAIN, ...rows(100, 2, "f")]); // before feature deleted row 1
  await merges(g, "main", "feature@3", "up-to-date");
  await merges(g, "main", "tree/feature");
  await checkThenUnmount(g, { main: [...without(MAIN, 1), ...rows(100, 2, "f")] });
});

onEach("C08 siblings: merging again after more commits starts from the last merge", async (t, engine) => {
  const g = await mounted(t, "siblings", engine);
  await merges(g, "main", "x", "fast-forward");
  await checkTip(g, "main", changed(rows(0, 10), 1, { v: "x" }));
  await stock[engine].op(g.ds, "x", "update", { where: "id = 1", values: { v: "second" } });
  await stock[engine].op(g.ds, "x", "add", { rows: rows(50, 1, "o") });
  const second = [...changed(rows(0, 10), 1, { v: "second" }), ...rows(50, 1, "o")];
  await merges(g, "main", "x", ["merged", "fast-forward"]);
  await checkTip(g, "main", second);
  assert.equal(second.length, 11);
  await merges(g, "main", "x", "up-to-date");
  await checkThenUnmount(g, { main: second });
});

onEach(
  "C08 siblings, after a true merge: the row that was merged can be updated and deleted again",
  async (t, engine) => {
    const g = await mounted(t, "siblings", engine),
      op = (...a) => stock[engine].op(g.ds, ...a);
    await op("main", "delete", { where: "id = 9" });
    await merges(g, "main", "x");
    await op("x", "update", { where: "id = 1", values: { v: "second" } });
    await merges(g, "main", "x");
    await checkTip(g, "main", without(changed(rows(0, 10), 1, { v: "second" }), 9));
    await op("x", "delete", { where: "id = 1" });
    await merges(g, "main", "x");
    await merges(g, "main", "x", "up-to-date");
    await checkThenUnmount(g, { main: without(rows(0, 10), 1, 9) });
  },
);

onEach("siblings: one edit that arrives by two ways is taken once", async (t, engine) => {
  const g = await mounted(t, "siblings", engine);
  await merges(g, "s", "x"); // s now holds x's edit
  await merges(g, "main", "x", "fast-forward");
  await merges(g, "main", "s", ["merged", "fast-forward"]);
  const both = changed(changed(rows(0, 10), 1, { v: "x" }), 2, { v: "s" });
  await checkTip(g, "main", both);
  await merges(g, "main", "x", "up-to-date");
  await merges(g, "t", "main");
  await checkThenUnmount(g, { main: both, s: both, t: changed(both, 3, { v: "t" }) });
});

onEach("siblings: after a criss-cross the rows are right or the merge is refused", async (t, engine) => {
  const g = await mounted(t, "siblings", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  await op("main", "add", { rows: rows(60, 1) });
  await merges(g, "x", "s@2"); // each takes the other's tip of before
  await merges(g, "s", "x@2");
  const both = changed(changed(rows(0, 10), 1, { v: "x" }), 2, { v: "s" });
  await checkTip(g, "x", both);
  await checkTip(g, "s", both);
  await op("s", "add", { rows: rows(70, 1) });
  await mergesOrRefuses(g, "x", "s", [...both, ...rows(70, 1)]);
  await checkTip(g, "s", [...both, ...rows(70, 1)]);
});

// overlap_deletes merged once, then one change after the other on the source
const UNION = OVERLAP.union;

onEach(
  "merging again takes over just what came since: appends, deletes in base and grafted fragments, updates",
  async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine),
      op = (...a) => stock[engine].op(g.ds, ...a);
    await merges(g, "main", "feature");
    let all = UNION;
    const step = async (op_, args, next) => {
      await op("feature", op_, args);
      await merges(g, "main", "feature");
      all = next(all);
      await checkTip(g, "main", all);
      await merges(g, "main", "feature", "up-to-date");
    };
    await step("add", { rows: rows(1100, 2, "g") }, (r) => [...r, ...rows(1100, 2, "g")]);
    await step("delete", { where: "id IN (0, 299)" }, (r) => without(r, 0, 299));
    await step("delete", { where: "id = 1001" }, (r) => without(r, 1001)); // a row of a fragment that main grafted
    await step("update", { where: "id IN (1, 1002, 1100)", values: { v: "u" } }, (r) =>
      changed(r, [1, 1002, 1100], { v: "u" }),
    );
    await op("main", "delete", { where: "id = 1101" });
    all = without(all, 1101);
    await step("delete", { where: "id = 2" }, (r) => without(r, 2));
    await checkThenUnmount(g, { main: all });
  },
);

onEach("both directions again and again: each side's commits arrive once on the other", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  let all = UNION;
  await merges(g, "main", "feature");
  await merges(g, "feature", "main", "fast-forward");
  for (let i = 0; i < 3; i++) {
    const [f, m] = [rows(3000 + i, 1, "f"), rows(4000 + i, 1, "m")];
    await op("feature", "add", { rows: f });
    await op("feature", "delete", { where: `id = ${30 + i}` });
    await op("main", "add", { rows: m });
    await op("main", "update", { where: `id = ${60 + i}`, values: { v: "round" } });
    all = changed(without([...all, ...f, ...m], 30 + i), 60 + i, { v: "round" });
    await merges(g, "main", "feature");
    await merges(g, "feature", "main", "fast-forward");
    await checkTip(g, "main", all);
    await checkTip(g, "feature", all);
  }
  await merges(g, "feature", "main", "up-to-date");
  await merges(g, "main", "feature", NOTHING_NEW);
  await checkThenUnmount(g, { main: all, feature: all });
});

// Stock clean-up goes with compaction in these engines: optimize() does both.
for (const sides of [["main"], ["feature"], ["main", "feature"]]) {
  for (const what of ["optimize", "clean"]) {
    onEach(
      `merging again after stock ${what} of ${sides.join(" and ")} takes over just what is new`,
      async (t, engine) => {
        const g = await mounted(t, "overlap_deletes", engine),
          op = (...a) => stock[engine].op(g.ds, ...a);
        await merges(g, "main", "feature");
        for (const side of sides) await op(side, what);
        await checkTip(g, "main", UNION);
        await merges(
          g,
          "main",
          "feature",
          sides.includes("feature") ? ["up-to-date", "merged", "empty-merge"] : "up-to-date",
        );
        await op("feature", "add", { rows: rows(1100, 2, "g") });
        await merges(g, "main", "feature");
        let all = [...UNION, ...rows(1100, 2, "g")];
        await checkTip(g, "main", all);
        for (const side of sides) await op(side, what);
        await op("feature", "add", { rows: rows(1200, 1, "h") });
        await merges(g, "main", "feature");
        all = [...all, ...rows(1200, 1, "h")];
        await checkThenUnmount(g, { main: all });
      },
    );
  }
}

onEach("a delete on the source after stock compacted the target: right rows or a refusal", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  await merges(g, "main", "feature");
  await op("main", "optimize");
  await op("feature", "delete", { where: "id IN (3, 1000)" });
  await mergesOrRefuses(g, "main", "feature", without(UNION, 3, 1000));
});

onEach("the source's old versions cleaned away before the next merge: the kept base serves", async (t, engine) => {
  const g = await mounted(t, "siblings", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  await op("main", "add", { rows: rows(60, 1) });
  await merges(g, "main", "x");
  await op("x", "clean");
  await op("x", "add", { rows: rows(50, 1) });
  await merges(g, "main", "x");
  await checkThenUnmount(g, { main: [...changed(rows(0, 10), 1, { v: "x" }), ...rows(50, 1), ...rows(60, 1)] });
});
