// SPDX-License-Identifier: Apache-2.0
// A table with stable row ids. After the fork both sides append (taking the same next ids), update and delete.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10), { storageOptions: { new_table_enable_stable_row_ids: "true" } });
const f = await (await t.branches()).create("feature");
await f.add(rows(100, 3, "f"));
await f.update({ where: "id = 2", values: { v: "ff" } });
await f.delete("id = 9");
await t.add(rows(200, 4, "m"));
await t.update({ where: "id = 5", values: { v: "mm" } });
await say("main", t);
await say("feature", f);
for (const h of [t, f])
  console.log((await h.query().withRowId().select(["id"]).toArray()).map((r) => `${r.id}@${r._rowid}`).join(" "));
