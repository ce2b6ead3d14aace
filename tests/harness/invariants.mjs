// SPDX-License-Identifier: Apache-2.0
// What every manifest that lancefs commits must be to Lance, read from the storage with protoc.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load, manifests } from "../interop/manifest.mjs";

const DELETIONS = 1,
  STABLE_ROW_IDS = 2,
  CONFIG = 8,
  BASE_PATHS = 16;

// Feature flags as Lance computes them from the content (config counts for writers only).
export function flagsFor(m) {
  const common =
    (m.fragments.some((f) => f.deletion) ? DELETIONS : 0) |
    (m.fragments.some((f) => f.rowIds) ? STABLE_ROW_IDS : 0) |
    (m.bases.length ? BASE_PATHS : 0);
  return { reader: common, writer: common | (Object.keys(m.config).length ? CONFIG : 0) };
}

// The number of values in a deletion file of kind .bin (a portable roaring bitmap).
export function countBitmap(b) {
  const RUNS = 12347,
    NO_RUNS = 12346;
  const cookie = b.readUInt32LE(0) & 0xffff;
  assert.ok(cookie === RUNS || cookie === NO_RUNS, `roaring cookie ${cookie}`);
  const containers = cookie === RUNS ? (b.readUInt32LE(0) >>> 16) + 1 : b.readUInt32LE(4);
  let at = cookie === RUNS ? 4 + Math.ceil(containers / 8) : 8,
    n = 0;
  for (let i = 0; i < containers; i++, at += 4) n += b.readUInt16LE(at + 2) + 1;
  return n;
}

// The directory that a base id means, for a branch directory `dir`.
function baseDir(dir, m, id) {
  if (id === undefined) return dir;
  const base = m.bases.find((b) => b.id === id);
  assert.ok(base, `base_id ${id} has no entry`);
  assert.equal(base.root, true, `base ${id} (${base.path}) is a data set root`);
  return base.path;
}

function checkFragments(m) {
  const ids = m.fragments.map((f) => f.id);
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
    "fragment ids are unique and sorted",
  );
  if (ids.length)
    assert.ok(ids.at(-1) <= (m.maxFragment ?? -1), `max_fragment_id ${m.maxFragment} covers ${ids.at(-1)}`);
}

function checkFiles(dir, m) {
  const seen = new Set();
  for (const f of m.fragments) {
    for (const file of f.files) {
      const where = path.join(baseDir(dir, m, file.base), "data", file.path);
      assert.ok(!seen.has(file.path), `data file ${file.path} stands in the manifest once`);
      seen.add(file.path);
      assert.ok(fs.existsSync(where), `fragment ${f.id}: ${where} is there`);
      if (file.size) assert.equal(fs.statSync(where).size, file.size, `size of ${where}`);
    }
    if (f.deletion) checkDeletion(dir, m, f);
  }
}

function checkDeletion(dir, m, f) {
  const where = path.join(baseDir(dir, m, f.deletion.base), "_deletions", f.deletion.path);
  assert.ok(fs.existsSync(where), `fragment ${f.id}: ${where} is there`);
  assert.ok(f.deletion.deleted < f.rows, `fragment ${f.id}: a fragment without live rows is not listed`);
  if (f.deletion.type === "BITMAP")
    assert.equal(countBitmap(fs.readFileSync(where)), f.deletion.deleted, `num_deleted_rows of fragment ${f.id}`);
}

// An index entry names a base that holds its files.
function checkIndexes(dir, m) {
  for (const i of m.indices) {
    const uuid = i.uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"),
      where = path.join(baseDir(dir, m, i.base), "_indices", uuid);
    assert.ok(fs.existsSync(where) && fs.readdirSync(where).length, `the files of index ${i.name} are in ${where}`);
  }
}

function checkBases(dir, m) {
  const paths = m.bases.map((b) => b.path),
    ids = m.bases.map((b) => b.id);
  assert.equal(new Set(paths).size, paths.length, `no base path twice: ${paths.join(" ")}`);
  assert.equal(new Set(ids).size, ids.length, "no base id twice");
  for (const p of paths)
    assert.notEqual(path.resolve(p), path.resolve(dir), "no base path names the target's own directory");
}

function checkTransaction(dir, m) {
  assert.ok(m.transaction, "the transaction stands in the manifest");
  assert.ok(m.transaction.op, "the transaction has a known operation");
  const file = path.join(dir, "_transactions", m.transactionFile);
  assert.ok(fs.existsSync(file), `${file} is there`);
  assert.deepEqual(
    fs.readFileSync(file),
    Buffer.from(m.transaction.bytes),
    "the transaction file equals the one in the manifest",
  );
  assert.equal(
    m.transactionFile,
    `${m.transaction.readVersion}-${m.transaction.uuid}.txn`,
    "name of the transaction file",
  );
  const first = m.transaction.op === "clone"; // a branch begins with its parent's number
  assert.ok(m.transaction.readVersion < m.version || first, "a transaction reads an older version");
}

// What lies in _versions and is none of the format's: half-made files.
export const halfMade = (dir) =>
  fs
    .readdirSync(path.join(dir, "_versions"))
    .filter((n) => !/^(\d+\.manifest|latest_version_hint\.json)$/.test(n))
    .sort();

function checkVersionsDirectory(dir, m, leftovers) {
  assert.deepEqual(halfMade(dir), leftovers, "nothing half-made stays in _versions");
  const lengths = new Set(manifests(dir).map((x) => x.name.length === 29));
  assert.equal(lengths.size, 1, "one naming scheme in _versions");
  const hint = JSON.parse(fs.readFileSync(path.join(dir, "_versions/latest_version_hint.json"), "utf8"));
  assert.equal(hint.version, m.version, "latest_version_hint.json");
}

// Checks the newest manifest of a branch directory (the one that lancefs just wrote) and returns it. `leftovers`: what
// half-made files a daemon left there that was killed.
export function checkManifest(dir, branch = "main", { leftovers = [] } = {}) {
  const m = load(dir);
  assert.equal(m.version, m.nameVersion, "the version equals the one in the file's name");
  assert.equal(m.branch, branch === "main" ? undefined : branch, "the branch field");
  checkFragments(m);
  checkBases(dir, m);
  checkFiles(dir, m);
  checkIndexes(dir, m);
  checkTransaction(dir, m);
  checkVersionsDirectory(dir, m, leftovers);
  assert.deepEqual(m.flags, flagsFor(m), "feature flags");
  return m;
}
