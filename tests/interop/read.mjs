// SPDX-License-Identifier: Apache-2.0
// The stock reader by hand: node read.mjs DIRECTORY [BRANCH] prints version, columns, rows in id order, and whether a
// filter on each indexed column finds what a scan finds. DIRECTORY is NAME.lance or a branch below a mount. LDB=lance12
// for the other engine.
import { loadEngine } from "./engines.mjs";
import { read } from "./reader.mjs";

const [, , dir, branch] = process.argv;
try {
  const r = await read(loadEngine(process.env.LDB ?? "lance10"), dir, branch);
  console.log(`version ${r.version}  columns ${r.columns.join(" ")}  rows ${r.rows.length}  count ${r.count}`);
  for (const row of r.rows) console.log(row.map((x) => (typeof x === "object" ? JSON.stringify(x) : x)).join(" "));
  for (const name of r.indexes) console.log(`index ${name} checked`);
  for (const line of r.wrong) console.log(`WRONG ${line}`);
  if (r.wrong.length || r.rows.length !== r.count) process.exitCode = 1;
} catch (e) {
  console.error("ERROR", e.message.split("\n")[0]);
  process.exitCode = 1;
}
