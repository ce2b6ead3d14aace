// SPDX-License-Identifier: Apache-2.0
// Struct, list and vector columns (several field ids each) and an index on the vector. feature appends, deletes and adds
// a column; main appends.
import { fresh, lancedb, say } from "./lib.mjs";

const db = await fresh();
const row = (i) => ({
  id: i,
  p: { x: i, y: { z: `z${i}` } },
  tags: [`a${i}`, "b"],
  vector: Array.from({ length: 8 }, (_, k) => Math.sin(i * 7 + k)),
});
const t = await db.createTable(
  "t",
  Array.from({ length: 600 }, (_, i) => row(i)),
);
await t.createIndex("vector", { config: lancedb.Index.ivfFlat({ numPartitions: 2 }) });
const f = await (await t.branches()).create("feature");
await f.add([row(1000), row(1001)]);
await f.delete("id < 3");
await f.addColumns([{ name: "dbl", valueSql: "id * 2" }]);
await t.add([row(2000)]);
await say("main", t);
await say("feature", f);
