// SPDX-License-Identifier: Apache-2.0
// Makes the files of this folder anew with one stock engine (README.md says what each holds):
//   LDB=lance10 node tests/unit/data/make.mjs <empty folder>; LDB=lance12 node tests/unit/data/make.mjs <another one>
// The databases are opened by relative paths, so that the base paths in the manifests are short and the same everywhere.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadEngine } from "../../interop/engines.mjs";

const engine = process.env.LDB ?? "lance10";
const { lancedb, arrow } = loadEngine(engine);
const here = path.dirname(fileURLToPath(import.meta.url));
process.chdir(process.argv[2]);

const rows = (from, n) => Array.from({ length: n }, (_, i) => ({ id: from + i, v: `r${from + i}` }));
const numbers = (n) => arrow.tableFromArrays({ id: Int32Array.from({ length: n }, (_, i) => i) });
const keep = (from, to) => fs.copyFileSync(from, path.join(here, `${engine}-${to}`));
const only = (dir) => {
  const names = fs.readdirSync(dir).filter((n) => !n.startsWith("."));
  if (names.length !== 1) throw new Error(`${dir}: ${names}`);
  return path.join(dir, names[0]);
};
const manifest = (dir, version) =>
  path.join(dir, "_versions", `${String((1n << 64n) - 1n - BigInt(version)).padStart(20, "0")}.manifest`);

async function deletions(name, n, where, kind) {
  const db = await lancedb.connect(`./${name}`);
  const t = await db.createTable("t", numbers(n));
  await t.delete(where);
  keep(only(`${name}/t.lance/_deletions`), `${name}.${kind}`);
}
await deletions("three", 10, "id IN (1, 4, 7)", "arrow");
await deletions("quarter", 4000, "id % 4 = 0", "arrow");
await deletions("third", 20000, "id % 3 = 0", "bin");
await deletions("twentieth", 140000, "id % 20 = 1", "bin");

// main: 1 create, 2 append, 3 delete, 4 index, 5 append; feature leaves it at 5 and its child leaves feature at 7
const db = await lancedb.connect("./db");
const t = await db.createTable("t", rows(0, 10));
await t.add(rows(10, 10));
await t.delete("id IN (3, 13)");
await t.createIndex("id", { config: lancedb.Index.btree() });
await t.add(rows(20, 5));
const branches = await t.branches();
const feature = await branches.create("feature");
await feature.update({ where: "id = 5", values: { v: "five" } });
await feature.delete("id = 6");
const child = await branches.create("feature/child-é", "feature");
await child.add(rows(30, 2));
const tags = await t.tags();
await tags.create("v1", 1);
await (await feature.tags()).create("on-feature", await feature.version());
const root = "db/t.lance";
keep(manifest(root, 1), "create.manifest");
keep(manifest(root, 3), "delete.manifest");
keep(manifest(root, 5), "append.manifest");
keep(manifest(`${root}/tree/feature`, 5), "branch.manifest");
keep(manifest(`${root}/tree/feature`, 6), "update.manifest");
keep(manifest(`${root}/tree/feature/child-é`, 8), "child.manifest");
keep(`${root}/_refs/branches/feature.json`, "branch-feature.json");
keep(`${root}/_refs/branches/feature%2Fchild-%C3%A9.json`, "branch-child.json");
keep(`${root}/_refs/tags/v1.json`, "tag-v1.json");
keep(`${root}/_refs/tags/on-feature.json`, "tag-on-feature.json");

const stable = await lancedb.connect("./stable");
const s = await stable.createTable("t", rows(0, 10), { storageOptions: { new_table_enable_stable_row_ids: "true" } });
await s.update({ where: "id = 2", values: { v: "two" } });
await s.add(rows(10, 3));
keep(manifest("stable/t.lance", 3), "stable.manifest");
