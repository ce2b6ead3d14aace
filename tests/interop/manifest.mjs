// SPDX-License-Identifier: Apache-2.0
// Reads manifests through protoc and the project's own .proto files, as the tests ask about them: independent of the
// program under test. By hand: node manifest.mjs DATASET_OR_BRANCH_DIRECTORY [VERSION]
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { PROJECT } from "./engines.mjs";

const PROTO = process.env.PROTO ?? path.join(PROJECT, "proto");
const V2_NAME_LENGTH = "18446744073709551614.manifest".length;
const FOOTER_LENGTH = 16; // i64 offset of the message, i16 major, i16 minor, "LANC"

// The text that protoc makes of a message; the same bytes are decoded once.
const decoded = new Map();
function decode(type, file, bytes) {
  const key = `${type} ${createHash("sha1").update(bytes).digest("hex")}`;
  if (!decoded.has(key)) decoded.set(key, protoc(type, file, bytes));
  return decoded.get(key);
}
function protoc(type, file, bytes) {
  const r = spawnSync("protoc", [`-I${PROTO}`, `--decode=lance.table.${type}`, `${PROTO}/${file}`], {
    input: bytes,
    maxBuffer: 1 << 30,
  });
  if (r.status !== 0) throw new Error(`protoc --decode=lance.table.${type}: ${r.error?.message ?? r.stderr}`);
  return r.stdout.toString("latin1");
}

const ESCAPES = { n: "\n", r: "\r", t: "\t" };
// protoc's escapes undone; one character a byte, so that bytes fields survive. utf8() makes text of it.
const unescape = (s) =>
  s.replace(/\\([0-7]{1,3}|.)/g, (_, c) =>
    /^[0-7]/.test(c) ? String.fromCharCode(parseInt(c, 8)) : (ESCAPES[c] ?? c),
  );
export const utf8 = (s) => (s === undefined ? undefined : Buffer.from(s, "latin1").toString("utf8"));

// protoc's text as a tree of { key: [values] }
function tree(text) {
  const stack = [{}];
  for (const line of text.split("\n")) {
    const s = line.trim(),
      top = stack.at(-1);
    if (!s) continue;
    if (s === "}") {
      stack.pop();
      continue;
    }
    if (s.endsWith("{") && !s.includes('"')) {
      const child = {};
      (top[s.slice(0, -1).trim()] ??= []).push(child);
      stack.push(child);
      continue;
    }
    const colon = s.indexOf(":"),
      raw = s.slice(colon + 1).trim();
    (top[s.slice(0, colon)] ??= []).push(raw.startsWith('"') ? unescape(raw.slice(1, -1)) : raw);
  }
  return stack[0];
}

const one = (x) => x?.[0];
const number = (x) => (one(x) === undefined ? undefined : Number(one(x)));
const entries = (x) => Object.fromEntries((x ?? []).map((e) => [utf8(one(e.key)) ?? "", utf8(one(e.value)) ?? ""]));

// The version that a manifest's file name stands for; undefined for other names.
export function versionOf(name) {
  if (!/^\d+\.manifest$/.test(name)) return undefined;
  const n = BigInt(name.slice(0, -".manifest".length));
  return Number(name.length === V2_NAME_LENGTH ? (1n << 64n) - 1n - n : n);
}

// [{ name, version }] of a branch directory, oldest first
export function manifests(dir) {
  return fs
    .readdirSync(path.join(dir, "_versions"))
    .map((name) => ({ name, version: versionOf(name) }))
    .filter((m) => m.version !== undefined)
    .sort((a, b) => a.version - b.version);
}
export const versions = (dir) => manifests(dir).map((m) => m.version);
export const tip = (dir) => versions(dir).at(-1);

function section(bytes, offset) {
  const at = Number(offset),
    length = bytes.readUInt32LE(at);
  return bytes.subarray(at + 4, at + 4 + length);
}

function dataFile(f) {
  return {
    path: utf8(one(f.path)),
    base: number(f.base_id),
    size: number(f.file_size_bytes),
    fields: (f.fields ?? []).map(Number),
  };
}
function deletionFile(fragment, d) {
  const type = one(d.file_type) ?? "ARROW_ARRAY",
    suffix = type === "BITMAP" ? "bin" : "arrow";
  return {
    type,
    base: number(d.base_id),
    deleted: number(d.num_deleted_rows) ?? 0,
    path: `${fragment}-${one(d.read_version) ?? 0}-${one(d.id) ?? 0}.${suffix}`,
  };
}
function fragment(f) {
  const id = number(f.id) ?? 0;
  return {
    id,
    rows: number(f.physical_rows) ?? 0,
    files: (f.files ?? []).map(dataFile),
    rowIds: f.inline_row_ids !== undefined,
    deletion: f.deletion_file ? deletionFile(id, f.deletion_file[0]) : undefined,
  };
}
const basePath = (b) => ({
  id: number(b.id) ?? 0,
  name: utf8(one(b.name)),
  root: one(b.is_dataset_root) === "true",
  path: utf8(one(b.path)),
});
const index = (i) => ({
  name: utf8(one(i.name)),
  base: number(i.base_id),
  uuid: Buffer.from(one(i.uuid?.[0]?.uuid) ?? "", "latin1").toString("hex"),
});

const ABOUT = ["read_version", "uuid", "tag", "transaction_properties"];
function transaction(bytes) {
  const t = tree(decode("Transaction", "transaction.proto", bytes));
  return {
    bytes,
    tree: t,
    uuid: utf8(one(t.uuid)),
    readVersion: number(t.read_version) ?? 0,
    op: Object.keys(t).find((k) => !ABOUT.includes(k)),
    properties: entries(t.transaction_properties),
  };
}

// What a manifest file says; the transaction and the indexes in it are decoded when they are asked for.
export function parseManifest(bytes) {
  const at = Number(bytes.readBigUInt64LE(bytes.length - FOOTER_LENGTH)),
    message = section(bytes, at);
  if (at + 4 + message.length !== bytes.length - FOOTER_LENGTH)
    throw new Error("the manifest message does not reach to the footer");
  const t = tree(decode("Manifest", "table.proto", message));
  return {
    tree: t,
    version: number(t.version),
    branch: utf8(one(t.branch)),
    maxFragment: number(t.max_fragment_id),
    flags: { reader: number(t.reader_feature_flags) ?? 0, writer: number(t.writer_feature_flags) ?? 0 },
    bases: (t.base_paths ?? []).map(basePath),
    fragments: (t.fragments ?? []).map(fragment),
    fields: (t.fields ?? []).map((f) => ({ id: number(f.id) ?? 0, name: utf8(one(f.name)) })),
    config: entries(t.config),
    metadata: entries(t.table_metadata),
    transactionFile: utf8(one(t.transaction_file)),
    dataFormat: utf8(one(t.data_format?.[0]?.version)),
    nextRowId: number(t.next_row_id) ?? 0,
    get transaction() {
      return t.transaction_section ? transaction(section(bytes, one(t.transaction_section))) : undefined;
    },
    get indices() {
      if (!t.index_section) return [];
      return (tree(decode("IndexSection", "table.proto", section(bytes, one(t.index_section)))).indices ?? []).map(index);
    },
  };
}

// The manifest of a branch directory's newest version, or of the one asked for.
export function load(dir, version) {
  const all = manifests(dir),
    found = version === undefined ? all.at(-1) : all.find((m) => m.version === version);
  if (!found) throw new Error(`${dir} has no version ${version}`);
  const file = path.join(dir, "_versions", found.name);
  return Object.assign(parseManifest(fs.readFileSync(file)), { file, name: found.name, nameVersion: found.version });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const m = load(process.argv[2], process.argv[3] === undefined ? undefined : Number(process.argv[3]));
  const { tree: _, transaction: t, ...rest } = m;
  console.dir(
    { ...rest, transaction: t && { op: t.op, readVersion: t.readVersion, uuid: t.uuid, properties: t.properties } },
    { depth: 6 },
  );
}
