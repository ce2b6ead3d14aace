// SPDX-License-Identifier: Apache-2.0
// x, s, t fork from main and edit disjoint rows (x: 1, s: 2, t: 3); del deletes row 5, ins appends a copy of row 5. For repeated, criss-cross and shared merges.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const m = await db.createTable("t", rows(0, 10));
const b = await m.branches(),
  h = {};
for (const n of ["x", "s", "t", "del", "ins"]) h[n] = await b.create(n);
for (const [n, i] of [
  ["x", 1],
  ["s", 2],
  ["t", 3],
])
  await h[n].update({ where: `id = ${i}`, values: { v: n } });
await h.del.delete("id = 5");
await h.ins.add(rows(5, 1));
for (const [n, t] of Object.entries({ main: m, ...h })) await say(n, t);
