// SPDX-License-Identifier: Apache-2.0
// Deletion files damaged in the ways that lead parsers astray (C65): cut, with other counts, keys, cookies and offsets, with
// rows that the fragment does not have. Each merge is refused and changes nothing. (Every byte of both kinds, Arrow files too:
// unit/test_deletion.c, and fuzz/.)
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { control, mounted, onEach } from "../harness/tip.mjs";
import { difference, snapshot } from "../harness/workspace.mjs";

const u16 = (n) => { const b = Buffer.alloc(2); b.writeUInt16LE(n); return b; };
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32LE(n >>> 0); return b; };
const patch = (bytes, at, piece) => Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + piece.length)]);

function* cuts(bytes) {
  for (const at of [0, 1, 4, 8, bytes.length >> 1, bytes.length - 8, bytes.length - 1]) yield [`cut at ${at}`, bytes.subarray(0, at)];
  yield ["a byte too many", Buffer.concat([bytes, Buffer.from([0])])];
}

// A portable roaring bitmap: u32 cookie 12346, u32 containers, for each u16 key and u16 cardinality - 1, for each u32 offset.
// All of these are wrong, whatever the rest says.
function* damagedBitmaps(bytes) {
  assert.equal(bytes.readUInt32LE(0), 12346, "as stock writes it: no runs");
  const n = bytes.readUInt32LE(4);
  yield* cuts(bytes);
  for (const cookie of [0, 12345, 12347, 0xffff303b, 0xffffffff]) yield [`cookie ${cookie}`, patch(bytes, 0, u32(cookie))];
  for (const count of [0, n - 1, n + 1, 65536, 65537, 0x7fffffff, 0xffffffff]) yield [`${count} containers`, patch(bytes, 4, u32(count))];
  yield ["keys that fall", Buffer.concat([bytes.subarray(0, 8), bytes.subarray(12, 16), bytes.subarray(8, 12), bytes.subarray(16)])];
  yield ["a key twice", patch(bytes, 12, bytes.subarray(8, 10))];
  yield ["rows that the fragment has not", patch(bytes, 8 + 4 * (n - 1), u16(0xffff))];
  for (const cardinality of [0, 4095, 0xffff]) yield [`cardinality ${cardinality + 1}`, patch(bytes, 10, u16(cardinality))];
  for (const offset of [0, 0x7fffffff, 0xffffffff]) yield [`offset ${offset}`, patch(bytes, 8 + 4 * n, u32(offset))];
  // a run that goes past 65535: cookie 12347 with one container, which is a run
  yield ["a run past the container", Buffer.concat([u32(12347), Buffer.from([1]), u16(0), u16(9), u16(1), u16(65530), u16(100)])];
  yield ["unsorted rows", Buffer.concat([u32(12346), u32(1), u16(0), u16(1), u32(16), u16(7), u16(3)])];
}

// How many were refused: each must be.
async function refuseEach(g, branch, file, damaged) {
  const good = fs.readFileSync(file);
  let refused = 0;
  for (const [what, bytes] of damaged) {
    fs.writeFileSync(`${file}.new`, bytes);
    fs.renameSync(`${file}.new`, file);
    const before = snapshot(g.ds),
      r = await ctl(control(g, "main"), branch);
    assert.notEqual(r.code, 0, `${what}: merged, though nobody can know the rows: ${r.answer.text}`);
    assert.match(String(r.errno), /^(EIO|EOPNOTSUPP|EFBIG)$/, `${what}: ${r.answer.text}`);
    assert.deepEqual(difference(before, snapshot(g.ds)).filter((l) => /_versions|_refs|^(gone|changed)/.test(l)), [], what);
    refused++;
  }
  fs.writeFileSync(`${file}.new`, good);
  fs.renameSync(`${file}.new`, file);
  return refused;
}

onEach("C65 damaged bitmaps of deleted rows: refused, main as before; the whole one merges", async (t, engine) => {
  const g = await mounted(t, "bitmap_deletes", engine),
    deletion = load(g.storage("feature")).fragments[0].deletion,
    file = path.join(g.storage("feature"), "_deletions", deletion.path);
  assert.equal(deletion.type, "BITMAP");
  assert.ok((await refuseEach(g, "feature", file, damagedBitmaps(fs.readFileSync(file)))) > 25);
  const r = await ctl(control(g, "main"), "feature");
  assert.equal(r.code, 0, r.answer.text);
  const m = load(g.ds);
  assert.equal(m.fragments[0].deletion.deleted, 200000 - 86660, "as many as both sides deleted: arithmetic of C04");
  await g.m.unmount();
});
