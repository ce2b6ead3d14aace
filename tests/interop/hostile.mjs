// SPDX-License-Identifier: Apache-2.0
// Damaged and malicious data sets: for each name one copy of a good data set (main of ten rows; branch feature with two
// more, whose deletion file hides id 4), in which one thing is changed: a byte or a field of feature's newest manifest, a
// file in _refs or _versions, a data or a deletion file. `good` is as it should be. Paths in the manifests name files
// outside every data set that an attacker would like to see read: secret.lance beside the copies, and /etc.
//
//     node hostile.mjs [OUT] [MOUNT POINT]     base_mount has a base path at the mount point
import fs from "node:fs";
import path from "node:path";
import { fresh, lancedb, OUT, rows } from "./lib.mjs";
import { build, edit, message, parse, remade } from "./wire.mjs";

const MOUNT = process.argv[3] ?? "/nowhere";
const VERSIONS = "t.lance/tree/feature/_versions",
  BRANCHES = "t.lance/_refs/branches";

await fresh();
const t = await (await lancedb.connect(`${OUT}/good`)).createTable("t", rows(0, 10));
const f = await (await t.branches()).create("feature");
await f.add(rows(100, 2, "f"));
await f.delete("id = 4");
fs.writeFileSync(`${OUT}/secret.lance`, "SECRET outside every data set\n");

const nameOf = (version) => `${18446744073709551615n - BigInt(version)}.manifest`;
const NEWEST = nameOf(await f.version());
const rewrite = (file, fn) => fs.writeFileSync(file, fn(fs.readFileSync(file)));
const basePath = (p) => (m) => edit(m, 18, () => message([1, 0], [3, 1], [4, p])); // Manifest.base_paths

// A copy whose base path names the copy, so that only the one change differs from good.
function copy(name) {
  const dir = path.join(OUT, name);
  fs.cpSync(`${OUT}/good`, dir, { recursive: true });
  for (const x of fs.readdirSync(`${dir}/${VERSIONS}`).filter((n) => n.endsWith(".manifest")))
    rewrite(`${dir}/${VERSIONS}/${x}`, (b) => remade(b, basePath(`${dir}/t.lance`)));
  return dir;
}

const bytes = (name, fn) => rewrite(`${copy(name)}/${VERSIONS}/${NEWEST}`, fn);
const manifest = (name, fn) => bytes(name, (b) => remade(b, fn));
const fragment = (m, i, fn) => edit(m, 2, (b) => build(fn(parse(b))), i); // Manifest.fragments
const ownFile = (m, fn) => fragment(m, 1, (x) => edit(x, 2, (b) => build(fn(parse(b))))); // what the branch wrote
const put = (name, file, data) => {
  const to = `${copy(name)}/${file}`;
  fs.mkdirSync(path.dirname(to), { recursive: true });
  fs.writeFileSync(to, data);
};

// --- the manifest as a file ---

const footer = (fn) => (b) => {
  const changed = Buffer.from(b);
  fn(changed, changed.length - 16, Number(b.readBigUInt64LE(b.length - 16)));
  return changed;
};
bytes("empty", () => Buffer.alloc(0));
bytes("half", (b) => b.subarray(0, b.length >> 1));
bytes("footer_only", (b) => b.subarray(b.length - 16));
bytes("bad_magic", (b) => Buffer.concat([b.subarray(0, -1), Buffer.from("X")]));
bytes("offset_past_end", footer((b, at) => b.writeBigUInt64LE(1n << 20n, at)));
bytes("offset_huge", footer((b, at) => b.writeBigUInt64LE((1n << 64n) - 4n, at)));
bytes("length_huge", footer((b, _, message) => b.writeUInt32LE(0xffffffff, message)));
bytes("length_short", footer((b, _, message) => b.writeUInt32LE(40, message)));

// --- what it says ---

const DATA_PATHS = {
  up: "../../../../../secret.lance",
  abs: `${OUT}/secret.lance`,
  dot: ".",
  dotdot: "..",
  none: "",
  nul: "a\0b.lance",
  newline: "a\nb.lance",
  slash: "sub/x.lance",
  long: "x".repeat(5000),
  latin1: Buffer.from([0xff, 0xfe, 0x2e]),
};
for (const [n, p] of Object.entries(DATA_PATHS))
  manifest(`path_${n}`, (m) => ownFile(m, (x) => edit(x, 1, () => Buffer.from(p))));

const BASES = {
  etc: "/etc",
  up: `${OUT}/base_up/t.lance/../../..`,
  relative: "../..",
  empty: "",
  s3: "s3://bucket/t.lance",
  file: `file://${OUT}/good/t.lance`,
  encoded: "/var/%2e%2e/etc",
  prefix: `${OUT}/base_prefix/t.lance-evil`,
  mount: MOUNT,
  dev: "/dev",
};
for (const [n, p] of Object.entries(BASES)) manifest(`base_${n}`, basePath(p));
manifest("base_missing", (m) => ownFile(m, (x) => edit(x, 7, () => 77n)));
manifest("base_twice", (m) => [...m, [18, 2, message([1, 0], [3, 1], [4, "/etc"])]]);
manifest("base_100k", (m) => [
  ...m,
  ...Array.from({ length: 100_000 }, (_, i) => [18, 2, message([1, i + 1], [4, "/x"])]),
]);

manifest("frag_twice", (m) => [...m, m.find((x) => x[0] === 2)]);
manifest("frag_id_huge", (m) => fragment(m, 1, (x) => edit(x, 1, () => (1n << 63n) + 5n)));
manifest("rows_huge", (m) => fragment(m, 1, (x) => edit(x, 4, () => (1n << 64n) - 1n)));
manifest("size_lie", (m) => ownFile(m, (x) => edit(x, 6, () => 1n << 40n)));
manifest("deleted_more_than_rows", (m) =>
  fragment(m, 0, (x) => edit(x, 3, (deletion) => build(edit(parse(deletion), 4, () => 999n)))),
);
manifest("version_lie", (m) => edit(m, 3, () => 9999n));
manifest("branch_lie", (m) => edit(m, 20, () => Buffer.from("../../main")));
manifest("reader_flag", (m) => edit(m, 9, (v) => (v ?? 0n) | (1n << 40n)));
manifest("writer_flag", (m) => edit(m, 10, (v) => (v ?? 0n) | (1n << 40n)));
manifest("unknown_field", (m) => [...m, [999, 2, Buffer.from("keep me")]]);
const tail = (...extra) => (m) => Buffer.concat([build(m), Buffer.from(extra)]);
manifest("varint_11", tail(0x18, ...Array(10).fill(0xff), 1));
manifest("wire_type_7", tail(0x1f, 1));
manifest("field_past_end", tail(0x12, 0x7f, 1));

// --- refs, hints and names of versions ---

const ref = (changes) =>
  JSON.stringify({
    parentBranch: null,
    identifier: { version_mapping: [[1, "0".repeat(32)]] },
    parentVersion: 1,
    createAt: 1,
    manifestSize: 1,
    metadata: {},
    ...changes,
  });
const REF_NAMES = {
  up: "..%2F..%2F..%2Fetc",
  nul: "a%00b",
  bad: "a%zz",
  dot: "%2E%2E",
  slash: "%2Fetc",
  main: "main",
  none: "",
};
for (const [n, x] of Object.entries(REF_NAMES)) put(`ref_name_${n}`, `${BRANCHES}/${x}.json`, ref());
const REFS = {
  empty: "",
  half: ref().slice(0, 30),
  deep: "[".repeat(200_000),
  cycle: ref({ parentBranch: "feature" }),
  parent_gone: ref({ parentBranch: "nobody" }),
  parent_future: ref({ parentVersion: 9000 }),
  number: ref().replace('"parentVersion":1', '"parentVersion":1e400'),
};
for (const [n, text] of Object.entries(REFS)) put(`ref_${n}`, `${BRANCHES}/feature.json`, text);
fs.mkdirSync(`${copy("ref_is_dir")}/${BRANCHES}/d.json`);
fs.symlinkSync("/etc/passwd", `${copy("ref_symlink")}/${BRANCHES}/p.json`);

const HINTS = {
  old: '{"version":1}',
  future: '{"version":999}',
  junk: "not json",
  huge: '{"version":99999999999999999999999}',
  empty: "",
};
for (const [n, h] of Object.entries(HINTS)) put(`hint_${n}`, `${VERSIONS}/latest_version_hint.json`, h);

const VERSION_NAMES = {
  detached: `d${(1n << 63n) + 7n}.manifest`,
  zero: "18446744073709551615.manifest",
  overflow: "99999999999999999999.manifest",
  word: "x.manifest",
  tmp: `.tmp_${NEWEST}_1`,
  short: "7.manifest",
};
for (const [n, x] of Object.entries(VERSION_NAMES))
  put(`version_name_${n}`, `${VERSIONS}/${x}`, fs.readFileSync(`${OUT}/good/${VERSIONS}/${NEWEST}`));
fs.symlinkSync("/dev/zero", `${copy("version_symlink")}/${VERSIONS}/${nameOf(50)}`);
fs.mkdirSync(`${copy("version_is_dir")}/${VERSIONS}/${nameOf(50)}`);

// --- files ---

const inFeature = (name, dir) => `${copy(name)}/t.lance/tree/feature/${dir}`;
{
  const data = inFeature("data_symlink", "data"),
    file = `${data}/${fs.readdirSync(data)[0]}`;
  fs.rmSync(file);
  fs.symlinkSync(`${OUT}/secret.lance`, file);
}
{
  const data = inFeature("dir_symlink", "data");
  fs.renameSync(data, `${data}.real`);
  fs.symlinkSync("/etc", data);
}
const DAMAGE = {
  gone: (file) => fs.rmSync(file),
  half: (file) => fs.truncateSync(file, fs.statSync(file).size >> 1),
  junk: (file) => fs.writeFileSync(file, Buffer.alloc(600, 0x41)),
};
for (const [kind, fn] of Object.entries(DAMAGE)) {
  const dir = inFeature(`deletion_${kind}`, "_deletions");
  fn(`${dir}/${fs.readdirSync(dir)[0]}`);
}

console.log(
  fs
    .readdirSync(OUT)
    .filter((n) => n !== "secret.lance")
    .join(" "),
);
