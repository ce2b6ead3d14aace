// SPDX-License-Identifier: Apache-2.0
// What tests of who holds whom share: .gc, files of a kind, whole trees in numbers.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { ctl } from "./control.mjs";

export const KINDS = ["data", "deletions", "indexes", "transactions", "staged", "lines"];

// `echo WORDS > MNT/.gc` must come through: { result, data: { files, bytes }, ..., total, text }.
export async function gc(g, words = "older-than=0s") {
  const r = await ctl(path.join(g.m.mnt, ".gc"), words);
  assert.equal(r.code, 0, `echo '${words}' > .gc: ${r.errno ?? r.stderr}\n${r.answer.text}`);
  const out = { ...r.answer };
  for (const kind of [...KINDS, "total"]) {
    const [, files, bytes] = /^(\d+) files, (\d+) bytes$/.exec(r.answer[kind]) ?? assert.fail(r.answer.text);
    out[kind] = { files: Number(files), bytes: Number(bytes) };
  }
  for (const unit of ["files", "bytes"])
    assert.equal(
      out.total[unit],
      KINDS.reduce((n, kind) => n + out[kind][unit], 0),
      `the total of ${unit}`,
    );
  return out;
}
export async function gcFails(g, words, errno) {
  const r = await ctl(path.join(g.m.mnt, ".gc"), words);
  assert.equal(r.errno, errno, `echo '${words}' > .gc: ${r.stderr}\n${r.answer.text}`);
  return r.answer;
}

// Every regular file below a directory, by its path from there: { size, ino, nlink }.
export function filesOf(dir) {
  const out = new Map();
  const walk = (rel) => {
    for (const e of fs.readdirSync(path.join(dir, rel), { withFileTypes: true })) {
      const p = path.join(rel, e.name);
      if (e.isDirectory()) walk(p);
      else if (e.isFile()) {
        const st = fs.statSync(path.join(dir, p));
        out.set(p, { size: st.size, ino: st.ino, nlink: st.nlink });
      }
    }
  };
  if (fs.existsSync(dir)) walk("");
  return out;
}
export const paths = (dir) => [...filesOf(dir).keys()].sort();
