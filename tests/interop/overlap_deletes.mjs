// SPDX-License-Identifier: Apache-2.0
// Three fragments of 100 rows. Both sides delete in fragment 0 with ids 15..19 in common; fragment 1 only feature, fragment 2 only main.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 100));
await t.add(rows(100, 100));
await t.add(rows(200, 100));
const f = await (await t.branches()).create("feature");
await f.delete("id BETWEEN 10 AND 19");
await f.delete("id BETWEEN 150 AND 159");
await f.add(rows(1000, 3, "f"));
await t.delete("id BETWEEN 15 AND 24");
await t.delete("id BETWEEN 250 AND 259");
await t.add(rows(2000, 2, "m"));
await say("main", t);
await say("feature", f);
console.log("union of both: 300-15-10-10+3+2 =", 300 - 15 - 10 - 10 + 5, "rows");
