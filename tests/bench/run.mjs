// SPDX-License-Identifier: Apache-2.0
// node tests/bench/run.mjs [NAME...]: the benchmarks of this folder, or those named. A benchmark is a file here that
// exports bench().
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { HERE, printHead } from "./lib.mjs";

const found = [];
for (const file of fs.readdirSync(HERE).sort()) {
  if (!/^import[^]*export async function bench\(/m.test(fs.readFileSync(path.join(HERE, file), "utf8"))) continue;
  found.push(path.basename(file, ".mjs"));
}
const wanted = process.argv.slice(2),
  unknown = wanted.filter((name) => !found.includes(name));
if (unknown.length) {
  console.error(`no benchmark ${unknown.join(", ")}; there are: ${found.join(", ")}`);
  process.exit(2);
}
printHead();
for (const name of wanted.length ? wanted : found)
  await (await import(pathToFileURL(path.join(HERE, `${name}.mjs`)))).bench();
process.exit(0); // the harness keeps its engines
