// SPDX-License-Identifier: Apache-2.0
// main has a btree on id before the fork. feature adds an index on n, rewrites indexed rows and appends unindexed ones; feature/child forks from it.
import { fresh, rows, say, lancedb } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 1000));
await t.createIndex("id", { config: lancedb.Index.btree() });
const b = await t.branches();
const f = await b.create("feature");
await f.createIndex("n", { config: lancedb.Index.btree() });
await f.update({ where: "id < 5", values: { n: -1 } });
await f.add(rows(5000, 10, "f"));
const c = await b.create("feature/child", "feature");
await c.add(rows(6000, 3, "c"));
await t.add(rows(2000, 10, "m"));
for (const [n, h] of Object.entries({ main: t, feature: f, "feature/child": c })) {
  await say(n, h);
  console.log(
    "  indices",
    (await h.listIndices()).map((i) => i.name),
  );
}
