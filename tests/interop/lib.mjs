// SPDX-License-Identifier: Apache-2.0
// What the generators share. Each makes its data set below OUT: the first argument, or out/<generator>.
// LDB is the engine that writes: lance10 (the default), lance12, or a folder whose node_modules holds one.
import fs from "node:fs";
import path from "node:path";
import { loadEngine } from "./engines.mjs";

export const { lancedb, arrow } = loadEngine(process.env.LDB ?? "lance10");
export const OUT = path.resolve(process.argv[2] ?? path.join("out", path.basename(process.argv[1], ".mjs")));

// An empty database directory; what was there is removed.
export async function fresh(dir = OUT) {
  fs.rmSync(dir, { recursive: true, force: true });
  fs.mkdirSync(dir, { recursive: true });
  return lancedb.connect(dir);
}

// n rows with id from..from+n-1, a text column and a number column
export const rows = (from, n, tag = "r") =>
  Array.from({ length: n }, (_, i) => ({ id: from + i, v: `${tag}${from + i}`, n: from + i }));

export const ids = async (t) =>
  (await t.query().select(["id"]).toArray()).map((r) => Number(r.id)).sort((a, b) => a - b);

export async function say(label, t) {
  console.log(`${label}: version ${await t.version()}, ${await t.countRows()} rows`);
}
