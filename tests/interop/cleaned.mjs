// SPDX-License-Identifier: Apache-2.0
// main is cleaned after the fork of early (its fork version must survive); late has old versions of its own removed, so its history since the fork is not complete.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10));
await t.add(rows(10, 10));
const b = await t.branches(),
  early = await b.create("early");
await early.add(rows(100, 1, "e"));
await t.delete("id = 3");
await t.add(rows(20, 5, "m"));
const late = await b.create("late");
for (let i = 0; i < 4; i++) await late.add(rows(200 + i, 1, "l"));
const opt = { cleanupOlderThan: new Date(Date.now() + 1000), deleteUnverified: true };
for (const [n, h] of [
  ["late", late],
  ["main", t],
])
  try {
    console.log(n, JSON.stringify((await h.optimize(opt)).prune));
  } catch (e) {
    console.log(n, "cleanup refused:", e.message.split("\n")[0].slice(0, 150));
  }
for (const [n, h] of Object.entries({ main: t, early, late })) {
  await say(n, h);
  console.log("  versions", (await h.listVersions()).map((v) => v.version).join(" "));
}
