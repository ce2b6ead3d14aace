// SPDX-License-Identifier: Apache-2.0
// Six 10-row fragments. feature deletes and appends while main is compacted; compacted is compacted while main deletes (fork points differ).
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10));
for (let i = 1; i < 6; i++) await t.add(rows(i * 10, 10));
const b = await t.branches();
const feature = await b.create("feature"),
  compacted = await b.create("compacted");
await feature.delete("id IN (3, 13, 55)");
await feature.add(rows(500, 2, "f"));
await compacted.optimize();
await t.optimize();
await t.delete("id = 20");
for (const [n, h] of Object.entries({ main: t, feature, compacted })) await say(n, h);
