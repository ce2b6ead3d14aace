// SPDX-License-Identifier: Apache-2.0
// gone: branch deletes every row of fragment 1 (the fragment disappears) while main deletes some of it; empty: branch deletes everything, then appends; blank: a table with no rows and a branch that appends.
import { fresh, rows, say, arrow } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10));
await t.add(rows(10, 10));
await t.add(rows(20, 10));
const b = await t.branches(),
  gone = await b.create("gone"),
  empty = await b.create("empty");
await gone.delete("id BETWEEN 10 AND 19");
await empty.delete("true");
await empty.add(rows(900, 2, "e"));
await t.delete("id IN (11, 12, 25)");
const z = await db.createEmptyTable("blank", new arrow.Schema([new arrow.Field("id", new arrow.Int32(), true)]));
const zf = await (await z.branches()).create("feature");
await zf.add([{ id: 1 }]);
for (const [n, h] of Object.entries({ main: t, gone, empty, blank: z, "blank/feature": zf })) await say(n, h);
