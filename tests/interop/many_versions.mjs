// SPDX-License-Identifier: Apache-2.0
// main with 500 versions, branch long forked at version 250 with 200 commits of its own. argv[3] scales the counts, 1 if
// not given. Each fiftieth version of main deletes a row, each other one adds the row of its number.
import { fresh, rows, say } from "./lib.mjs";

const scale = Number(process.argv[3] ?? 1);
const db = await fresh();
const t = await db.createTable("t", rows(0, 1));
for (let i = 2; i <= 500 * scale; i++) {
  if (i % 50 === 0) await t.delete(`id = ${i - 7}`);
  else await t.add(rows(i, 1));
}
const long = await (await t.branches()).create("long", undefined, 250 * scale);
for (let i = 0; i < 200 * scale; i++) await long.add(rows(10000 + i, 1, "l"));
await say("main", t);
await say("long", long);
