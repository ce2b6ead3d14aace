// SPDX-License-Identifier: Apache-2.0
// Branches whose commits cancel out: addel appends and deletes the same rows, back sets a value and sets it back, twice has the same change as main, none has no commits.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10));
const b = await t.branches(),
  addel = await b.create("addel"),
  back = await b.create("back"),
  twice = await b.create("twice"),
  none = await b.create("none");
await addel.add(rows(100, 3));
await addel.delete("id >= 100");
await back.update({ where: "id = 3", values: { v: "x" } });
await back.update({ where: "id = 3", values: { v: "r3" } });
await twice.delete("id = 5");
await t.delete("id = 5");
for (const [n, h] of Object.entries({ main: t, addel, back, twice, none })) await say(n, h);
