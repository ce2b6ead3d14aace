// SPDX-License-Identifier: Apache-2.0
// Legal but awkward branch names (control-file names, layout names, unicode, dash, case pairs) and the leftovers of refused creations:
// a directory with a manifest below tree/ that no file in _refs/branches names. Prints which is which.
import { fresh, rows, OUT } from "./lib.mjs";
import fs from "fs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 10));
const b = await t.branches();
for (const n of [
  "f",
  "f/data",
  "f/_versions",
  "f/_deletions",
  "f/.merge",
  ".merge",
  "main/.merge",
  "main/x",
  "tree/main",
  "ü",
  "-rf",
  "A",
  "a",
  "a/b/c/d/e/f",
  "HEAD",
  "_refs",
  "0",
  "sp ace",
  "a..b",
  "x%2Fy",
  "x.lock",
  "n".repeat(240),
]) {
  const short = n.length > 30 ? n.slice(0, 8) + `... (${n.length})` : n;
  try {
    const h = await b.create(n);
    await h.add(rows(100, 1, "b"));
    console.log("made   ", short);
  } catch (e) {
    console.log(
      "refused",
      short,
      fs.existsSync(`${OUT}/t.lance/tree/${n}/_versions`) ? "(left a directory behind)" : "",
    );
  }
}
