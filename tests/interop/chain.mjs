// SPDX-License-Identifier: Apache-2.0
// main -> feature -> exp/sub -> exp/sub/deep, each with own data and deletions, plus old (from main version 1) and idle (no commit of its own).
import { fresh, rows, say, ids } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 5));
await t.add(rows(5, 5));
const b = await t.branches();
const f = await b.create("feature");
await f.add(rows(100, 2, "f"));
await f.delete("id = 1");
const s = await b.create("exp/sub", "feature");
await s.add(rows(200, 2, "s"));
await s.delete("id = 100");
const d = await b.create("exp/sub/deep", "exp/sub");
await d.add(rows(300, 2, "d"));
await d.delete("id = 6");
const old = await b.create("old", undefined, 1);
await old.add(rows(400, 1, "o"));
const idle = await b.create("idle", "feature");
await t.add(rows(10, 1, "m"));
for (const [n, h] of Object.entries({ main: t, feature: f, "exp/sub": s, "exp/sub/deep": d, old, idle })) {
  await say(n, h);
  console.log("  ids", (await ids(h)).join(" "));
}
