// SPDX-License-Identifier: Apache-2.0
// Damaged deletion files: one copy of a good data set (main, branch feature whose deletion file hides id 4) for each kind.
// deletion_gone, deletion_half, deletion_junk: the file is missing, cut, overwritten; deleted_more_than_rows: the manifest
// says that 999 of the fragment's 10 rows are deleted. good: nothing is wrong.
import fs from "node:fs";
import path from "node:path";
import { fresh, lancedb, OUT, rows } from "./lib.mjs";
import { build, edit, message, parse, remade } from "./wire.mjs";

await fresh();
const t = await (await lancedb.connect(`${OUT}/good`)).createTable("t", rows(0, 10));
const f = await (await t.branches()).create("feature");
await f.add(rows(100, 2, "f"));
await f.delete("id = 4");

const VERSIONS = "t.lance/tree/feature/_versions",
  DELETIONS = "t.lance/tree/feature/_deletions";
const manifests = (dir) =>
  fs
    .readdirSync(`${dir}/${VERSIONS}`)
    .filter((x) => x.endsWith(".manifest"))
    .map((x) => `${dir}/${VERSIONS}/${x}`);
const change = (file, fn) => fs.writeFileSync(file, remade(fs.readFileSync(file), fn));

// A copy whose base path names the copy, so that only the one change differs from good.
function copy(name) {
  const dir = path.join(OUT, name);
  fs.cpSync(`${OUT}/good`, dir, { recursive: true });
  for (const file of manifests(dir))
    change(file, (m) => edit(m, 18, () => message([1, 0], [3, 1], [4, `${dir}/t.lance`])));
  return dir;
}

const damage = {
  gone: (file) => fs.rmSync(file),
  half: (file) => fs.truncateSync(file, fs.statSync(file).size >> 1),
  junk: (file) => fs.writeFileSync(file, Buffer.alloc(600, 0x41)),
};
for (const [kind, fn] of Object.entries(damage)) {
  const dir = `${copy(`deletion_${kind}`)}/${DELETIONS}`;
  fn(`${dir}/${fs.readdirSync(dir)[0]}`);
}

// fragments (2) -> deletion_file (3) -> num_deleted_rows (4) of fragment 0 in the newest manifest (its name sorts first)
const newest = manifests(copy("deleted_more_than_rows")).sort()[0];
change(newest, (m) =>
  edit(m, 2, (frag) => build(edit(parse(frag), 3, (del) => build(edit(parse(del), 4, () => 999n)))), 0),
);
console.log(fs.readdirSync(OUT).join(" "));
