// SPDX-License-Identifier: Apache-2.0
// drop: branch drops column v while main edits v. gap: branch drops n and adds m, so live field ids are not consecutive. rename: branch renames v.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 20));
const b = await t.branches();
const drop = await b.create("drop"),
  gap = await b.create("gap"),
  rename = await b.create("rename");
await drop.dropColumns(["v"]);
await gap.dropColumns(["n"]);
await gap.addColumns([{ name: "m", valueSql: "id * 10" }]);
await rename.alterColumns([{ path: "v", rename: "text" }]);
await t.update({ where: "id = 3", values: { v: "edited" } });
for (const [n, h] of Object.entries({ main: t, drop, gap, rename })) await say(n, h);
