// SPDX-License-Identifier: Apache-2.0
// A commit made by hand, for what the stock engines' bindings for Node cannot write: the newest manifest of a branch
// directory, changed, as its next version, with its transaction.
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { manifests } from "./manifest.mjs";
import { build, message, parse } from "./wire.mjs";

const MANIFEST = { version: 3, file: 12, transaction: 21 },
  FOOTER = 16; // i64 offset of the message, i16 major, i16 minor, "LANC"

export const withNumber = (manifest, field, value) => [
  ...manifest.filter(([f]) => f !== field),
  [field, 0, BigInt(value)],
];
export const numberOf = (manifest, field) => manifest.find(([f]) => f === field)?.[2] ?? 0n;

function prefixed(bytes) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

// The commit's name in _versions, by the scheme of the one before.
const nameFor = (version, like) =>
  like.length === 29 ? `${(1n << 64n) - 1n - BigInt(version)}.manifest` : `${version}.manifest`;

// The newest manifest: its file's bytes, where its message begins, and its fields.
export function newest(dir) {
  const last = manifests(dir).at(-1),
    bytes = fs.readFileSync(path.join(dir, "_versions", last.name)),
    at = Number(bytes.readBigUInt64LE(bytes.length - FOOTER));
  return { last, bytes, at, manifest: parse(bytes.subarray(at + 4, bytes.length - FOOTER)) };
}

// operation(manifest) is the transaction's operation as [field, bytes], change(manifest) the next manifest; a manifest is
// a list of fields as wire.mjs parses it. An index section stays where it is.
export function commitByHand(dir, operation, change) {
  const { last, bytes, at, manifest: before } = newest(dir),
    version = last.version + 1,
    uuid = randomUUID(),
    file = `${last.version}-${uuid}.txn`;
  const transaction = message([1, last.version], [2, uuid], operation(before)),
    inline = prefixed(transaction),
    footer = Buffer.from(bytes.subarray(bytes.length - FOOTER));
  let manifest = withNumber(change(before), MANIFEST.version, version);
  manifest = withNumber(manifest, MANIFEST.transaction, at); // in front of the message, behind the index section
  manifest = manifest.filter(([f]) => f !== MANIFEST.file).concat([[MANIFEST.file, 2, Buffer.from(file)]]);
  footer.writeBigUInt64LE(BigInt(at + inline.length));
  fs.writeFileSync(path.join(dir, "_transactions", file), transaction);
  fs.writeFileSync(
    path.join(dir, "_versions", nameFor(version, last.name)),
    Buffer.concat([bytes.subarray(0, at), inline, prefixed(build(manifest)), footer]),
  );
  fs.writeFileSync(path.join(dir, "_versions/latest_version_hint.json"), JSON.stringify({ version }));
}
