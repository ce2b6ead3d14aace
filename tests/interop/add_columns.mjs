// SPDX-License-Identifier: Apache-2.0
// Schema growth on both sides. Every added column gets the same field id on its side, though the columns differ.
// score: other name; clash: same name, other type; same: same name, type and values; backfill: added column plus row deletes.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 50));
await t.add(rows(50, 50));
const b = await t.branches();
const col = (h, name, valueSql) => h.addColumns([{ name, valueSql }]);
const score = await b.create("score"),
  clash = await b.create("clash"),
  same = await b.create("same"),
  backfill = await b.create("backfill");
await col(score, "score", "n * 2");
await score.add([{ id: 900, v: "s", n: 1, score: 5 }]);
await col(clash, "label", "n * 1.5");
await col(same, "label", "concat('L', v)");
await backfill.delete("id = 7");
await col(backfill, "extra", "n + 1");
await col(t, "label", "concat('L', v)");
await t.delete("id = 60");
for (const [n, h] of Object.entries({ main: t, score, clash, same, backfill })) await say(n, h);
