// SPDX-License-Identifier: Apache-2.0
// A commit of Lance's UpdateConfig operation on a branch directory, as other bindings of Lance make it (the one for Node
// cannot): keys of the config, the table metadata and the schema metadata. A value of null removes its key.
//   configure(dir, { config: { a: "1" }, table: { b: null }, schema: { c: "2" } })
//   maps(dir)      the newest version's maps, in the same shape
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { manifests } from "./manifest.mjs";
import { build, message, parse } from "./wire.mjs";

// Each map's field in a manifest and in UpdateConfig.
const MAPS = { config: [16, 6], table: [19, 7], schema: [5, 8] };
const TRANSACTION = { inManifest: 21, file: 12, updateConfig: 110 },
  MANIFEST_VERSION = 3,
  FLAGS = 10,
  HAS_CONFIG = 8n,
  FOOTER = 16;

const entry = ([key, value]) => message([1, key], ...(value === null ? [] : [[2, value]]));
const keyOf = (bytes) => Buffer.from(parse(bytes).find(([f]) => f === 1)[2]).toString();

function withEntries(manifest, field, values) {
  const kept = manifest.filter(([f, , v]) => f !== field || !(keyOf(v) in values));
  const set = Object.entries(values).filter(([, v]) => v !== null);
  return [...kept, ...set.map((e) => [field, 2, entry(e)])];
}
const withNumber = (manifest, field, value) => [...manifest.filter(([f]) => f !== field), [field, 0, BigInt(value)]];
const numberOf = (manifest, field) => manifest.find(([f]) => f === field)?.[2] ?? 0n;

function prefixed(bytes) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

// The commit's name in _versions, by the scheme of the one before.
const nameFor = (version, like) =>
  like.length === 29 ? `${(1n << 64n) - 1n - BigInt(version)}.manifest` : `${version}.manifest`;

// The newest manifest: its file's bytes, where its message begins, and its fields.
function newest(dir) {
  const last = manifests(dir).at(-1),
    bytes = fs.readFileSync(path.join(dir, "_versions", last.name)),
    at = Number(bytes.readBigUInt64LE(bytes.length - FOOTER));
  return { last, bytes, at, manifest: parse(bytes.subarray(at + 4, bytes.length - FOOTER)) };
}

export function maps(dir) {
  const { manifest } = newest(dir);
  const text = (bytes) => (bytes === undefined ? "" : Buffer.from(bytes).toString());
  const pair = (bytes) => [1, 2].map((field) => text(parse(bytes).find(([f]) => f === field)?.[2]));
  const all = (field) => Object.fromEntries(manifest.filter(([f]) => f === field).map(([, , bytes]) => pair(bytes)));
  return Object.fromEntries(Object.entries(MAPS).map(([map, [field]]) => [map, all(field)]));
}

export function configure(dir, changes) {
  const { last, bytes, at, ...found } = newest(dir),
    version = last.version + 1,
    uuid = randomUUID(),
    file = `${last.version}-${uuid}.txn`;
  let manifest = found.manifest;
  const updates = Object.entries(changes).map(([map, values]) => [
    MAPS[map][1],
    message(...Object.entries(values).map((e) => [1, entry(e)])),
  ]);
  for (const [map, values] of Object.entries(changes)) manifest = withEntries(manifest, MAPS[map][0], values);
  const transaction = message([1, last.version], [2, uuid], [TRANSACTION.updateConfig, message(...updates)]);
  manifest = withNumber(manifest, MANIFEST_VERSION, version);
  manifest = withNumber(manifest, TRANSACTION.inManifest, at); // in front of the message, behind the index section
  manifest = manifest.filter(([f]) => f !== TRANSACTION.file).concat([[TRANSACTION.file, 2, Buffer.from(file)]]);
  const flags = numberOf(manifest, FLAGS) & ~HAS_CONFIG;
  manifest = withNumber(manifest, FLAGS, manifest.some(([f]) => f === MAPS.config[0]) ? flags | HAS_CONFIG : flags);
  const inline = prefixed(transaction),
    footer = Buffer.from(bytes.subarray(bytes.length - FOOTER));
  footer.writeBigUInt64LE(BigInt(at + inline.length));
  fs.writeFileSync(path.join(dir, "_transactions", file), transaction);
  fs.writeFileSync(
    path.join(dir, "_versions", nameFor(version, last.name)),
    Buffer.concat([bytes.subarray(0, at), inline, prefixed(build(manifest)), footer]),
  );
  fs.writeFileSync(path.join(dir, "_versions/latest_version_hint.json"), JSON.stringify({ version }));
}
