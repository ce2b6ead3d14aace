// SPDX-License-Identifier: Apache-2.0
// ow: branch replaces all rows (same schema), then appends. re: branch appends twice and is restored to its first append. main appends after the fork.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10));
await t.add(rows(10, 10));
const b = await t.branches(),
  ow = await b.create("ow"),
  re = await b.create("re");
await ow.add(rows(700, 4, "o"), { mode: "overwrite" });
await ow.add(rows(710, 1, "o"));
await re.add(rows(800, 1, "a"));
const keep = await re.version();
await re.add(rows(801, 1, "b"));
await re.checkout(keep);
await re.restore();
await t.add(rows(20, 1, "m"));
for (const [n, h] of Object.entries({ main: t, ow, re })) await say(n, h);
