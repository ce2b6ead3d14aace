// SPDX-License-Identifier: Apache-2.0
// a: a table with a tag; b: shallow clone of a at the tag, with a branch; c: shallow clone of b. Base paths point outside each dataset root.
// ia, ib, ib/feature: the same with an index made in ia. In Lance 10 the branch's index entry names a base that does not hold the index.
import { fresh, rows, say, lancedb, OUT } from "./lib.mjs";
const db = await fresh();
const a = await db.createTable("a", rows(0, 300));
await a.delete("id = 7");
await (await a.tags()).create("base", await a.version());
await a.add(rows(300, 5));
const b = await db.cloneTable("b", `${OUT}/a.lance`, { sourceTag: "base" });
await b.add(rows(1000, 2, "b"));
const f = await (await b.branches()).create("feature");
await f.add(rows(2000, 2, "f"));
await f.delete("id = 8");
const c = await db.cloneTable("c", `${OUT}/b.lance`);
await c.add(rows(3000, 1, "c"));
for (const [n, h] of Object.entries({ a, b, "b/feature": f, c })) await say(n, h);
const ia = await db.createTable("ia", rows(0, 300));
await ia.createIndex("id", { config: lancedb.Index.btree() });
const ib = await db.cloneTable("ib", `${OUT}/ia.lance`),
  fi = await (await ib.branches()).create("feature");
for (const [n, h] of Object.entries({ ia, ib, "ib/feature": fi }))
  try {
    console.log(n, "rows with id = 8:", await h.countRows("id = 8"));
  } catch (e) {
    console.log(
      n,
      "filter on the indexed column fails:",
      e.message.match(/Not found: \S+/)?.[0] ?? e.message.slice(0, 90),
    );
  }
