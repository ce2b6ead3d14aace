// SPDX-License-Identifier: Apache-2.0
// Shell verbs on names: commands as people type them, and what stock Lance then says of branches and tags.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { errnoIn } from "./control.mjs";
import { sh } from "./proc.mjs";
import { stock } from "./stock.mjs";
import { difference, ENGINES, snapshot } from "./workspace.mjs";

// A line of shell in the mount point, its words "$1", "$2", ...
const shell = (g, script, ...words) => sh(`cd "$MNT" && ${script}`, words, { env: { MNT: g.m.mnt, LC_ALL: "C" } });

export async function works(g, script, ...words) {
  const r = await shell(g, script, ...words);
  assert.equal(r.code, 0, `${script} ${words.join(" ")}: ${r.stderr}\n${g.m.log()}`);
  return r.stdout;
}
// It fails with this errno (or one of these), and no byte of the storage changes. With `why` the log must say so.
export async function refused(g, errno, script, words = [], why) {
  const before = snapshot(g.root),
    r = await shell(g, script, ...words);
  assert.notEqual(r.code, 0, `${script} ${words.join(" ")} came through`);
  assert.ok([errno].flat().includes(errnoIn(r.stderr)), `${errno} was expected of ${script} ${words.join(" ")}: ${r.stderr}`);
  assert.deepEqual(difference(before, snapshot(g.root)), [], "what was refused changed the storage");
  if (why) assert.match(g.m.log(), why);
}

const ask = async (g, engine, op) => (await stock[engine].op(g.ds, "main", op)).value;
// { name: [parent, version] } and { tag: version }, as both engines list them.
export async function listed(g, forks, tags) {
  for (const e of ENGINES) {
    if (forks) assert.deepEqual(sorted(await ask(g, e, "forks")), sorted(forks), `branches, by ${e}`);
    if (tags) assert.deepEqual(sorted(await ask(g, e, "tags")), sorted(tags), `tags, by ${e}`);
  }
}
const sorted = (object) => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));

export const refFile = (g, branch) => path.join(g.ds, "_refs/branches", `${encodeURIComponent(branch)}.json`);
export const tagFile = (g, tag) => path.join(g.ds, "_refs/tags", `${tag}.json`);
export const json = (file) => JSON.parse(fs.readFileSync(file, "utf8"));

// Nothing is under way, nothing was left lying about.
export function settled(g) {
  assert.equal(fs.existsSync(path.join(g.ds, "_lancefs/names")), false, "nothing is left in _lancefs/names");
  const links = [...snapshot(g.ds)].filter(([, what]) => what.startsWith("-> ")).map(([name]) => name);
  assert.deepEqual(links, [], "no link is left");
}
