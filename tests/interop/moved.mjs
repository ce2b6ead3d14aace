// SPDX-License-Identifier: Apache-2.0
// here: a dataset with a branch, renamed after it was written (base paths still name the old place, which is gone).
// copy + orig: a copy whose original still exists and then changed, so that a reader that follows the old path sees the wrong files.
import { fresh, rows, lancedb, OUT } from "./lib.mjs";
import fs from "fs";
await fresh();
async function make(dir) {
  const db = await lancedb.connect(`${OUT}/${dir}`),
    t = await db.createTable("t", rows(0, 10));
  const f = await (await t.branches()).create("feature");
  await f.add(rows(100, 2, "f"));
  await f.delete("id = 4");
  const c = await (await t.branches()).create("child", "feature");
  await c.add(rows(200, 1, "c"));
}
await make("before");
fs.renameSync(`${OUT}/before`, `${OUT}/here`);
await make("orig");
fs.cpSync(`${OUT}/orig`, `${OUT}/copy`, { recursive: true });
for (const f of fs.readdirSync(`${OUT}/orig/t.lance/data`))
  fs.writeFileSync(`${OUT}/orig/t.lance/data/${f}`, "changed in the original after the copy\n");
console.log(fs.readdirSync(OUT));
