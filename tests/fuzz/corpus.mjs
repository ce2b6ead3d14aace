// SPDX-License-Identifier: Apache-2.0
// Inputs for the fuzz targets out of real files: node tests/fuzz/corpus.mjs OUT [DIRECTORY...]
//
// From tests/unit/data, tests/data and every further directory (data sets that generators of tests/interop made) come
// manifests, transactions, deletion files, row id sequences and refs, each once, into OUT/TARGET/. What has no file of its own (commands,
// base paths, bytes that choose a manifest) is spelt out here.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";

const HERE = import.meta.dirname;
const BIGGEST = 64 << 10; // larger inputs are slow and show nothing more

function* filesBelow(dir) {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const full = path.join(dir, entry.name);
    if (entry.isDirectory()) yield* filesBelow(full);
    else if (entry.isFile()) yield full;
  }
}

const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32LE(n); return b; };
const text = (s) => Buffer.from(s, "utf8");

// The inline sections of a manifest (lance-format section 3), as far as they can be told without the schema.
function* varintFields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; at < bytes.length; shift += 7n) {
      const b = bytes[at++];
      value |= BigInt(b & 0x7f) << shift;
      if (b < 0x80) break;
    }
    return value;
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const type = key & 7;
    if (type === 0) yield { number: key >> 3, value: varint() };
    else if (type === 1) at += 8;
    else if (type === 5) at += 4;
    else if (type === 2) {
      const length = Number(varint());
      yield { number: key >> 3, bytes: bytes.subarray(at, at + length) };
      at += length;
    } else return;
  }
}

const TRANSACTION_SECTION = 21, FRAGMENTS = 2, ROW_IDS = 5, UPDATED_AT = 7, CREATED_AT = 9, PHYSICAL_ROWS = 4;

function* partsOfManifest(bytes) {
  const position = Number(bytes.readBigUInt64LE(bytes.length - 16));
  const message = bytes.subarray(position + 4, bytes.length - 16);
  for (const field of varintFields(message)) {
    if (field.number === TRANSACTION_SECTION && field.value !== undefined) {
      const at = Number(field.value);
      yield ["transaction", bytes.subarray(at + 4, at + 4 + bytes.readUInt32LE(at))];
    }
    if (field.number !== FRAGMENTS) continue;
    const parts = [...varintFields(field.bytes)];
    const rows = Number(parts.find((f) => f.number === PHYSICAL_ROWS)?.value ?? 0n);
    for (const part of parts) {
      const ids = part.number === ROW_IDS;
      if (part.bytes && (ids || part.number === UPDATED_AT || part.number === CREATED_AT))
        yield ["rowids", Buffer.concat([Buffer.from([ids ? 1 : 0]), u32(rows).subarray(0, 3), part.bytes])];
    }
  }
}

function* inputsOf(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.length > BIGGEST) return;
  switch (path.extname(file)) {
    case ".manifest":
      yield ["manifest", bytes];
      if (bytes.subarray(-4).toString() === "LANC") yield* partsOfManifest(bytes);
      break;
    case ".txn": yield ["transaction", bytes]; break;
    case ".arrow": yield ["arrow", Buffer.concat([u32(0), bytes])]; break;
    case ".bin": yield ["bitmap", Buffer.concat([u32(0), bytes])]; break;
    case ".json": yield ["ref", bytes]; break;
  }
}

const COMMANDS = [
  "feature\n", "  feature \r\n", "# a comment\n\nfeature\n", "f", "tree/exp/sub@7 tags/v1\n", "-- -rf dry-run\n",
  'feature message="week 12" property.a=b property.c="d e"\n', "feature strategy=source-wins rows=fail columns=dest-wins\n",
  "feature@3..5 squash replay\n", "older-than=7d dry-run\n", "NAME from=3 move\n", "steps=2\n", "all\n", "continue\nabort\n",
  "f mode=graft ff=only fieldids=strict expect=18446744073709551615 base=tags/t\n", "only=rows,columns,schema,config,indexes f\n",
  'f message="unended\n', "f expect=-1\nf expect=1x\nf expect=99999999999999999999\n", "@\n@@\nf@\nf@0\ntree/\n..\n", 'a"b"c ""\n',
];
const BASES = [
  "@/t.lance", "@/t.lance/tree/f", "/elsewhere/t.lance", "@/allowed", "@/allowed/../secret", "@/secret", "@/allowed-not", "@/t.lance2",
  "file://@/allowed", "file:@/t.lance/%2e%2e/secret", "file-object-store://@/%2E%2E%2Fsecret", "s3://bucket/t.lance", "relative/t.lance",
  "@/door", "@/allowed/out", "/moved", "/moved/../secret", "@/t.lance/tree/out", "/x/t.lance/../../secret", "@/x/t.lance", "/proc/self/root@/secret",
  "@//t.lance/./", "file:///%00", "@/t.lance/_lancefs/lines/0123", "t.lance", "/", "",
];
const NAMES = [
  "m.lance", "own.lance", "a.lance", "s.lance", "0-1-7.arrow", "i/page", "m/0.blob", "../secret/s.lance", "/etc/passwd", "l.lance", "up/secret/s.lance",
  "root/etc/passwd", "fd/0", "self.lance", ".", "..", "a//b", "line.lance", "x/../m.lance", "",
];

function* spelt() {
  for (const [i, command] of COMMANDS.entries()) yield ["command", Buffer.concat([Buffer.from([i]), text(command)])];
  for (const [i, base] of BASES.entries())
    for (const [j, name] of NAMES.entries())
      yield ["base", Buffer.concat([Buffer.from([(i + j * 3) & 0xf | ((i + j) % 5 ? 4 : 0)]), text(base), Buffer.from([0]), text(name)])];
  for (const name of ["main", "exp/sub", "a..b", ".lock", "ü", "%2F", "%00", "a%zz", "x".repeat(300)]) yield ["ref", text(name)];
  for (let i = 0; i < 64; i++) // chosen by a hash, so that there is something of all
    yield ["view", Buffer.concat([0, 1].map((j) => createHash("sha256").update(`${i}.${j}`).digest()))];
}

const [out, ...more] = process.argv.slice(2);
if (!out) {
  console.error("usage: corpus.mjs OUT [DIRECTORY...]");
  process.exit(2);
}
const counts = {};
const put = (target, bytes) => {
  const dir = path.join(out, target);
  fs.mkdirSync(dir, { recursive: true });
  fs.writeFileSync(path.join(dir, createHash("sha1").update(bytes).digest("hex").slice(0, 16)), bytes);
  counts[target] = (counts[target] ?? 0) + 1;
};
for (const dir of [path.join(HERE, "../unit/data"), path.join(HERE, "../data"), ...more])
  for (const file of filesBelow(dir)) for (const [target, bytes] of inputsOf(file)) put(target, bytes);
for (const [target, bytes] of spelt()) put(target, bytes);
console.log(Object.entries(counts).map(([target, n]) => `${target} ${n}`).join(", "));
