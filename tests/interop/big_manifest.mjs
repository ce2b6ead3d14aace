// SPDX-License-Identifier: Apache-2.0
// main with as many one-row fragments as argv[3] says (default 20000), made in seconds: stock Lance writes the first and
// the last two, one commit between appends the others, whose data files are hard links of the first one's. A branch
// `feature` with one fragment more; if argv[4] is given, a branch `long` with that many commits of one fragment each.
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { commitByHand, withNumber } from "./commit.mjs";
import { fresh, rows, say, OUT } from "./lib.mjs";
import { build, message, parse } from "./wire.mjs";

const LINKS_MAX = 30_000; // of one inode; ext4 ends at 65,000
const FRAGMENTS = 2,
  MAX_FRAGMENT_ID = 11; // of a manifest
const ID = 1,
  FILES = 2; // of a fragment
const PATH = 1; // of a data file
const APPEND = 100; // of a transaction
const n = Number(process.argv[3] ?? 20_000),
  commits = Number(process.argv[4] ?? 0);

// A data file's name as stock Lance makes it: 24 binary digits, 26 hexadecimal ones.
function fileName() {
  const bytes = randomBytes(16);
  return `${[...bytes.subarray(0, 3)].map((b) => b.toString(2).padStart(8, "0")).join("")}${bytes.toString("hex", 3)}.lance`;
}

// `count` more names for the file, beside it.
function link(file, count) {
  const dir = path.dirname(file);
  return Array.from({ length: count }, (_, i) => {
    const name = fileName();
    if ((i + 1) % LINKS_MAX === 0) {
      fs.copyFileSync(file, path.join(dir, name));
      file = path.join(dir, name);
    } else fs.linkSync(file, path.join(dir, name));
    return name;
  });
}

// Fragment records like `record`, each with a data file of its own, with ids from `first` on (undefined: no ids, as in a
// transaction).
function fragmentsLike(record, names, first) {
  const fields = parse(record).filter(([f]) => f !== ID),
    file = parse(fields.find(([f]) => f === FILES)[2]);
  return names.map((name, i) => {
    const named = build(file.map(([f, type, v]) => [f, type, f === PATH ? Buffer.from(name) : v]));
    const own = fields.map(([f, type, v]) => [f, type, f === FILES ? named : v]);
    return build(first === undefined ? own : [[ID, 0, BigInt(first + i)], ...own]);
  });
}

const db = await fresh(),
  ds = path.join(OUT, "t.lance");
(await db.createTable("t", rows(0, 1))).close();
const [first] = fs.readdirSync(path.join(ds, "data")),
  names = link(path.join(ds, "data", first), n - 3);
const record = (manifest) => manifest.find(([f]) => f === FRAGMENTS)[2];
commitByHand(
  ds,
  (m) => [APPEND, message(...fragmentsLike(record(m), names).map((f) => [1, f]))],
  (m) => [
    ...withNumber(m, MAX_FRAGMENT_ID, n - 3),
    ...fragmentsLike(record(m), names, 1).map((f) => [FRAGMENTS, 2, f]),
  ],
);
const t = await db.openTable("t");
for (let i = n - 2; i < n; i++) await t.add(rows(i, 1));
const feature = await (await t.branches()).create("feature");
await feature.add(rows(n, 1, "f"));
await say("main", t);
await say("feature", feature);
if (commits > 0) {
  const long = await (await t.branches()).create("long");
  for (let i = 0; i < commits; i++) await long.add(rows(2 * n + i, 1, "l"));
  await say("long", long);
}
