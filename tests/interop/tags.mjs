// SPDX-License-Identifier: Apache-2.0
// Tags: v1 on version 1 of main, feat-v on a version of branch feature, and a tag with the same name as a branch.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10));
await t.add(rows(10, 1));
const f = await (await t.branches()).create("feature");
await f.add(rows(100, 1, "f"));
await f.add(rows(101, 1, "f"));
await (await t.tags()).create("v1", 1);
await (await f.tags()).create("feat-v", await f.version());
await (await t.tags()).create("feature", 2);
await say("main", t);
await say("feature", f);
