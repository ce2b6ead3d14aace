// SPDX-License-Identifier: Apache-2.0
// Stock Lance goes on with a merged target as if nothing had happened: append, delete (in grafted fragments too), update,
// index, compact, clean up, in several orders and by either engine. After every step each row is there.
import assert from "node:assert/strict";
import { OVERLAP, changed, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, checkTip, merges, mergesOrRefuses, mounted, onEach } from "../harness/tip.mjs";
import { ENGINES } from "../harness/workspace.mjs";

const UNION = OVERLAP.union;

// What a step does with stock Lance and what it makes of the rows. A number keeps the appended ids apart.
const STEPS = {
  append: (n) => ["main", "add", { rows: rows(5000 + n, 2, "a") }, (all) => [...all, ...rows(5000 + n, 2, "a")]],
  "delete in a grafted fragment": () => ["main", "delete", { where: "id = 1001" }, (all) => without(all, 1001)],
  "delete over all fragments": () => [
    "main",
    "delete",
    { where: "id % 50 = 1" },
    (all) => all.filter((r) => r.id % 50 !== 1),
  ],
  "update a grafted row": () => [
    "main",
    "update",
    { where: "id = 1000", values: { v: "up" } },
    (all) => changed(all, 1000, { v: "up" }),
  ],
  "index id": () => ["main", "index", { column: "id" }, (all) => all],
  "index n": () => ["main", "index", { column: "n" }, (all) => all],
  compact: () => ["main", "optimize", {}, (all) => all],
  "clean main": () => ["main", "clean", {}, (all) => all],
  "clean feature": () => ["feature", "clean", {}, (all) => all],
  "append to feature": (n) => ["feature", "add", { rows: rows(7000 + n, 1, "f") }, (all) => all],
  "drop feature": () => ["main", "drop", { name: "feature" }, (all) => all],
};
const ORDERS = [
  [
    "append",
    "delete in a grafted fragment",
    "update a grafted row",
    "index id",
    "compact",
    "clean main",
    "append",
    "clean feature",
    "drop feature",
  ],
  [
    "clean feature",
    "drop feature",
    "index id",
    "delete over all fragments",
    "append",
    "compact",
    "index n",
    "clean main",
    "update a grafted row",
  ],
  [
    "compact",
    "clean main",
    "drop feature",
    "append",
    "index id",
    "update a grafted row",
    "delete in a grafted fragment",
  ],
  [
    "index id",
    "update a grafted row",
    "append to feature",
    "clean feature",
    "compact",
    "delete over all fragments",
    "clean main",
    "append",
  ],
];

// Which engine wrote the data set and which one goes on with it: both pairs that differ, and both that do not.
for (const [i, order] of ORDERS.entries()) {
  for (const worker of ENGINES) {
    onEach(`stock life after a merge, order ${i + 1}, ${worker} goes on: ${order.join(", ")}`, async (t, engine) => {
      const g = await mounted(t, "overlap_deletes", engine);
      await merges(g, "main", "feature");
      let all = UNION;
      for (const [n, name] of order.entries()) {
        const [branch, op, args, next] = STEPS[name](10 * n);
        await stock[worker].op(g.ds, branch, op, args).catch((e) => assert.fail(`${name}: ${e.message}`));
        all = next(all);
        await checkStorage(g, "main", all).catch((e) => {
          e.message = `after ${name}: ${e.message}`;
          throw e;
        });
      }
      await checkThenUnmount(g, { main: all });
    });
  }
}

onEach("stock life with both engines in turn, and merges in between", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  let all = UNION;
  await merges(g, "main", "feature");
  for (const [n, worker] of [...ENGINES, ...ENGINES].entries()) {
    const added = rows(8000 + n, 1, "b");
    await stock[worker].op(g.ds, "main", "delete", { where: `id = ${30 + n}` });
    await stock[worker].op(g.ds, "feature", "add", { rows: added });
    all = [...without(all, 30 + n), ...added];
    await merges(g, "main", "feature");
    await checkTip(g, "main", all);
  }
  await checkThenUnmount(g, { main: all });
});

onEach(
  "an index of the target stays right: new fragments are searched too, deleted rows are not found",
  async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine);
    await stock[engine].op(g.ds, "main", "index", { column: "id" });
    await merges(g, "main", "feature");
    await checkTip(g, "main", UNION); // the reader compares filters with a scan
    const { value } = await stock[engine].op(g.ds, "main", "count", { where: "id IN (12, 155, 1001, 2001)" });
    assert.equal(value, 2, "12 and 155 are deleted, 1001 and 2001 are there");
    await checkThenUnmount(g, { main: UNION });
  },
);

onEach("a branch forked by stock from a merged target holds its rows, and merges back", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  await merges(g, "main", "feature");
  await op("main", "fork", { name: "after" });
  await checkTip(g, "after", UNION);
  await op("after", "delete", { where: "id = 1002" });
  await op("after", "add", { rows: rows(6000, 1) });
  const all = [...without(UNION, 1002), ...rows(6000, 1)];
  await checkTip(g, "after", all);
  await merges(g, "after", "feature", "up-to-date");
  await merges(g, "main", "after", "fast-forward");
  await checkThenUnmount(g, { main: all, after: all });
});

onEach("stock restores the target to before the merge: it can be made again, or is refused", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await merges(g, "main", "feature");
  await stock[engine].op(g.ds, "main", "restore", { version: 6 });
  await checkTip(g, "main", OVERLAP.main);
  await mergesOrRefuses(g, "main", "feature", UNION);
});
