// SPDX-License-Identifier: Apache-2.0
// The same small dataset with a branch below directories with spaces, unicode (composed and decomposed), percent, hash, plus, quotes, tilde, and a question mark (where stock Lance puts the branch elsewhere).
import { fresh, rows, lancedb, OUT } from "./lib.mjs";
import fs from "fs";
import path from "path";
await fresh();
for (const d of [
  "with space",
  "h\u00e9llo",
  "he\u0301llo",
  "\u6570\u636e",
  "a%20b",
  "a#b",
  "a?b",
  "a+b",
  'it\'s "q"',
  "~t",
  "emoji \u{1F600}",
]) {
  const dir = path.join(OUT, d);
  fs.mkdirSync(dir);
  try {
    const db = await lancedb.connect(dir);
    const t = await db.createTable("t", rows(0, 10));
    const f = await (await t.branches()).create("feature");
    await f.add(rows(100, 1, "f"));
    await f.delete("id = 2");
    await t.add(rows(200, 1, "m"));
    console.log(JSON.stringify(d), "ok", await t.countRows(), await f.countRows(), fs.readdirSync(dir).join(" "));
  } catch (e) {
    console.log(JSON.stringify(d), "FAILED", e.message.split("\n")[0].slice(0, 120));
  }
}
