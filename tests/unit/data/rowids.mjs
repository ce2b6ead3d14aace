// SPDX-License-Identifier: Apache-2.0
// Makes the rowids-*.manifest files of this folder anew with one stock engine (README.md says what each holds) and
// prints the row ids that it reads back:
//   LDB=lance10 node tests/unit/data/rowids.mjs <empty folder>; LDB=lance12 node tests/unit/data/rowids.mjs <another one>
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadEngine } from "../../interop/engines.mjs";

const engine = process.env.LDB ?? "lance10";
const { lancedb, arrow } = loadEngine(engine);
const here = path.dirname(fileURLToPath(import.meta.url));
const STABLE = { storageOptions: { new_table_enable_stable_row_ids: "true" } };
process.chdir(process.argv[2]);

const rows = (from, n) => Array.from({ length: n }, (_, i) => ({ id: from + i, v: `r${from + i}` }));
const numbers = (n) => arrow.tableFromArrays({ id: Int32Array.from({ length: n }, (_, i) => i) });
const table = async (name, data) => (await lancedb.connect(`./${name}`)).createTable("t", data, STABLE);

async function keep(t, db, name) {
  const version = await t.version(), read = await t.query().withRowId().select(["id"]).toArray();
  const file = `${String((1n << 64n) - 1n - BigInt(version)).padStart(20, "0")}.manifest`;
  fs.copyFileSync(`${db}/t.lance/_versions/${file}`, path.join(here, `${engine}-rowids-${name}.manifest`));
  console.log(`${name}: version ${version}:`, read.slice(0, 40).map((r) => `${r.id}@${r._rowid}`).join(" "), read.length);
}

const m = await table("mixed", rows(0, 10));
await m.add(rows(10, 5));
await m.update({ where: "id = 2", values: { v: "two" } });
await m.update({ where: "id IN (1, 2, 4, 11)", values: { v: "more" } });
await m.mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
  .execute([{ id: 12, v: "a" }, { id: 3, v: "a" }, { id: 50, v: "a" }, { id: 0, v: "a" }, { id: 51, v: "a" }]);
await keep(m, "mixed", "mixed");
await m.delete("id IN (7, 13)");
await m.optimize();
await keep(m, "mixed", "compacted");
await m.update({ where: "id IN (5, 50)", values: { v: "moved" } });
await keep(m, "mixed", "moved");
await m.addColumns([{ name: "c", valueSql: "id" }]);
await keep(m, "mixed", "columns");

// A fragment with few deletions is compacted only together with others.
const a = await table("holes", numbers(1000));
await a.add(numbers(3));
await a.delete("id IN (5, 700, 990)");
await a.optimize();
await keep(a, "holes", "holes");
const b = await table("wide", numbers(70000));
await b.add(numbers(3));
await b.delete("id IN (5, 700, 69000)");
await b.optimize();
await keep(b, "wide", "wide_holes");
await b.delete("id % 7000 != 1 OR id = 1");
await b.optimize();
await keep(b, "wide", "sparse");
