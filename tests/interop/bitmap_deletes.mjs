// SPDX-License-Identifier: Apache-2.0
// One 200000-row fragment. feature deletes every third row (a .bin roaring bitmap over four containers), main deletes one solid run and 10 scattered rows (run/array shapes);
// few deletes so little that an .arrow file is used. Merging feature and few with main needs a union across file types.
import { fresh, say, arrow } from "./lib.mjs";
const N = 200000,
  db = await fresh();
const t = await db.createTable("t", arrow.tableFromArrays({ id: Int32Array.from({ length: N }, (_, i) => i) }));
const b = await t.branches(),
  f = await b.create("feature"),
  w = await b.create("few");
await f.delete("id % 3 = 0");
await w.delete("id IN (1, 65535, 65536, 199999)");
await t.delete("id BETWEEN 70000 AND 140000");
await t.delete("id % 20000 = 1");
for (const [n, h] of Object.entries({ main: t, feature: f, few: w })) await say(n, h);
