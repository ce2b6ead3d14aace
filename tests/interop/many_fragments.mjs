// SPDX-License-Identifier: Apache-2.0
// 2000 one-row fragments (argv[3] changes the number), branch wide with 20 more, and table c: a one-version shallow clone of all of them.
import { fresh, rows, say, OUT } from "./lib.mjs";
const n = Number(process.argv[3] ?? 2000);
const db = await fresh();
const t = await db.createTable("t", rows(0, 1));
for (let i = 1; i < n; i++) await t.add(rows(i, 1));
const w = await (await t.branches()).create("wide");
for (let i = 0; i < 20; i++) await w.add(rows(n + i, 1, "w"));
const c = await db.cloneTable("c", `${OUT}/t.lance`);
await say("main", t);
await say("wide", w);
await say("clone", c);
