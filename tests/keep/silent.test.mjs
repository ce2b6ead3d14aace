// SPDX-License-Identifier: Apache-2.0
// Section 10 of lance-format, one manifest after another: what corrupts silently, what opens but cannot be read, what cannot be
// written to. fsck.lancefs names each (tests/keep/fsck.test.mjs has those of whole files and refs), repairs none by guessing, and
// is content again when the bytes are back.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { build, edit, parse, remade } from "../interop/wire.mjs";
import { run } from "../harness/proc.mjs";
import { stock } from "../harness/stock.mjs";
import { onEach } from "../harness/tip.mjs";
import { generate, LANCEFS, workspace } from "../harness/workspace.mjs";

const FSCK = path.join(path.dirname(LANCEFS), "fsck.lancefs");
const newest = (dir) => path.join(dir, "_versions", fs.readdirSync(path.join(dir, "_versions")).filter((f) => f.endsWith(".manifest")).sort()[0]);
const within = (bytes, fn) => Buffer.from(build(fn(parse(bytes))));
// The message of the first fragment, of its first data file, of its deletion file.
const fragment = (m, fn) => edit(m, 2, (f) => within(f, fn), 0);
const dataFile = (m, fn) => fragment(m, (f) => edit(f, 2, (x) => within(x, fn), 0));
const more = (by) => (n) => (n ?? 0n) + by;

// name: [branch, fn(manifest's message), what is said]
const MANIFESTS = {
  "max_fragment_id too low": ["main", (m) => edit(m, 11, () => 0n), /max_fragment_id is 0, but there is a fragment/],
  "physical_rows too low: the last rows are not seen": ["main", (m) => fragment(m, (f) => edit(f, 4, more(-1n))), /holds 100 rows, but \S+ says that fragment 0 has 99/],
  "physical_rows too high": ["main", (m) => fragment(m, (f) => edit(f, 4, more(1n))), /holds 100 rows, but \S+ says that fragment 0 has 101/],
  "num_deleted_rows too low": ["feature", (m) => fragment(m, (f) => edit(f, 3, (d) => within(d, (x) => edit(x, 4, more(-1n))))), /holds 10 rows, \S+ says 9/],
  "two base paths of one id": ["feature", (m) => [...m, [18, 2, within(m.find((x) => x[0] === 18)[2], (b) => edit(b, 4, (p) => Buffer.from(`${p}/tree/gone`)))]], /two base paths have the id 0/],
  "a base id without base path": ["feature", (m) => m.filter((x) => x[0] !== 18), /names base path 0, which it does not have/],
  "an empty base path": ["feature", (m) => edit(m, 18, (b) => within(b, (x) => edit(x, 4, () => Buffer.alloc(0)))), /base path 0 is empty/],
  "a file size that is wrong": ["main", (m) => dataFile(m, (f) => edit(f, 6, more(7n))), /has \d+ bytes, not the \d+ that it was written with/],
  "column indices that are missing": ["main", (m) => dataFile(m, (f) => f.filter((x) => x[0] !== 3)), /does not tell where its columns are/],
  "a fragment without files": ["main", (m) => fragment(m, (f) => f.filter((x) => x[0] !== 2)), /fragment 0 has no data file/],
  "a data file without a name": ["main", (m) => dataFile(m, (f) => edit(f, 1, () => Buffer.alloc(0))), /fragment 0 has a data file without a name/],
  "files of two formats": ["main", (m) => dataFile(m, (f) => edit(f, 5, (n) => (n === 0n ? 1n : 0n))), /is of format 2\.\d in a table of format 2\.\d/],
  "two fragments of one id": ["main", (m) => [...m, m.find((x) => x[0] === 2)], /two fragments have the id 0/],
  "another version than the name says": ["main", (m) => edit(m, 3, () => 5n), /says that it is version 5/],
  "a branch that says main": ["feature", (m) => m.filter((x) => x[0] !== 20), /says that it is of branch main/],
  "a transaction file of another version": [
    "main",
    (m, dir) => edit(m, 12, (now) => Buffer.from(fs.readdirSync(path.join(dir, "_transactions")).sort().find((f) => f !== String(now)))),
    /is not the transaction of version 6 of main/,
  ],
};
onEach("what a manifest can say wrong: each is found, named, not repaired", async (t, engine) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", engine);
  for (const [name, [branch, fn, what]] of Object.entries(MANIFESTS)) {
    const file = newest(g.storage(branch)),
      good = fs.readFileSync(file),
      bad = remade(good, (m) => fn(m, g.storage(branch)));
    assert.notDeepEqual(bad, good, name);
    fs.writeFileSync(file, bad);
    const r = await run(FSCK, ["-y", g.ds]);
    assert.equal(r.code, 4, `${name}: ${r.stdout}${r.stderr}`);
    assert.ok(r.stdout.split("\n").some((l) => /^(error|note): /.test(l) && what.test(l)), `${name}: ${r.stdout}`);
    assert.deepEqual(fs.readFileSync(file), bad, `${name}: nobody guesses`);
    fs.writeFileSync(file, good);
  }
  assert.equal((await run(FSCK, ["-n", g.ds])).code, 0, "as it was");
  // what only a newer program can know is no damage, but it is said that nobody looked
  fs.writeFileSync(newest(g.ds), remade(fs.readFileSync(newest(g.ds)), (m) => edit(m, 9, () => 1n << 40n)));
  const unknown = await run(FSCK, ["-y", g.ds]);
  assert.equal(unknown.code, 0, unknown.stdout);
  assert.match(unknown.stdout, /^note: _versions\/\S+ uses format features that this program does not know .*not checked further$/m);
});

// Field 5 of a fragment: its row ids. The second fragment gets those of the first.
const ROW_IDS = {
  "two rows of one row id": [(m) => {
    const ids = parse(m.find((x) => x[0] === 2)[2]).find((x) => x[0] === 5)[2];
    return edit(m, 2, (f) => within(f, (x) => edit(x, 5, () => ids)), 1);
  }, /two rows have the row id \d+/],
  "next_row_id too low": [(m) => edit(m, 14, () => 1n), /next_row_id is 1, but there is a row/],
  "a fragment without row ids": [(m) => fragment(m, (f) => f.filter((x) => x[0] !== 5)), /fragment 0: .*the table does not open/],
};
onEach("stable row ids: given twice, not counted on, missing", async (t, engine) => {
  const w = workspace(t),
    ds = path.join(w.dir, "t.lance"),
    rows = [0, 1, 2].map((id) => ({ id, v: "x", n: id }));
  await stock[engine].create(ds, rows, { new_table_enable_stable_row_ids: "true" });
  await stock[engine].op(ds, "main", "add", { rows: rows.map((r) => ({ ...r, id: r.id + 10 })) });
  assert.equal((await run(FSCK, [ds])).code, 0);
  const file = newest(ds),
    good = fs.readFileSync(file);
  for (const [name, [fn, what]] of Object.entries(ROW_IDS)) {
    fs.writeFileSync(file, remade(good, fn));
    const r = await run(FSCK, ["-y", ds]);
    assert.equal(r.code, 4, `${name}: ${r.stdout}${r.stderr}`);
    assert.match(r.stdout, what, name);
  }
});
