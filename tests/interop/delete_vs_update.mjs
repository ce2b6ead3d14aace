// SPDX-License-Identifier: Apache-2.0
// Row-level clashes, one branch each: d_u deletes what main updates, u_d updates what main deletes, u_u both update, u_o updates other rows of the same fragment.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 100));
const b = await t.branches();
const up = (h, where, s) => h.update({ where, values: { v: s } });
const d_u = await b.create("d_u"),
  u_d = await b.create("u_d"),
  u_u = await b.create("u_u"),
  u_o = await b.create("u_o");
await d_u.delete("id = 12");
await up(u_d, "id = 40", "branch");
await up(u_u, "id = 12", "branch");
await up(u_o, "id = 70", "branch");
await up(t, "id = 12", "main");
await t.delete("id = 40");
for (const [n, h] of Object.entries({ main: t, d_u, u_d, u_u, u_o })) await say(n, h);
