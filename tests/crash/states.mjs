// SPDX-License-Identifier: Apache-2.0
// Every state of a data set that a kill can leave in the middle of a command, from one run of it: before each call that
// changes the file system the whole tree is copied (stopper.c). A kill leaves what the calls before it have made, no more and
// no less, since the kernel keeps what a process has written.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { LANCEFS, stopperPath } from "../harness/workspace.mjs";
import { calls } from "./stops.mjs";

export const FSCK = path.join(path.dirname(LANCEFS), "fsck.lancefs");

// Everything below a directory: Map of path -> hash of the bytes, "dir", or "-> target". Files that were looked at before and
// have not changed are not read again.
const hashes = new Map();
export function treeOf(dir) {
  const out = new Map();
  const walk = (rel) => {
    for (const e of fs.readdirSync(path.join(dir, rel), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const p = path.join(rel, e.name),
        full = path.join(dir, p);
      if (e.isDirectory()) {
        out.set(p, "dir");
        walk(p);
      } else out.set(p, e.isSymbolicLink() ? `-> ${fs.readlinkSync(full)}` : hashOf(full));
    }
  };
  walk("");
  return out;
}
function hashOf(file) {
  const st = fs.statSync(file, { bigint: true }),
    key = `${st.ino}:${st.size}:${st.mtimeNs}:${st.ctimeNs}`;
  if (!hashes.has(key)) hashes.set(key, createHash("sha1").update(fs.readFileSync(file)).digest("hex"));
  return hashes.get(key);
}
// A name for a tree, or for the part of it that `keep` wants.
export function keyOf(tree, keep = () => true) {
  const hash = createHash("sha1");
  for (const [name, what] of tree) if (keep(name)) hash.update(`${name}\0${what}\0`);
  return hash.digest("hex");
}
// What stock Lance reads.
export const outside = (p) => !p.startsWith("_lancefs");

// Makes the data set what the directory is, by what is different.
export function putBack(g, { dir, tree }) {
  const now = treeOf(g.ds);
  for (const [p, what] of [...now].reverse())
    if (!tree.has(p) || (tree.get(p) !== what && (what === "dir") !== (tree.get(p) === "dir"))) fs.rmSync(path.join(g.ds, p), { recursive: true });
  for (const [p, what] of tree) {
    if (now.get(p) === what) continue;
    const to = path.join(g.ds, p);
    if (what === "dir") fs.mkdirSync(to);
    else {
      fs.rmSync(to, { force: true });
      fs.cpSync(path.join(dir, p), to, { verbatimSymlinks: true });
    }
  }
}

let count = 0;
// `start(env)` makes ready a process with this environment, `act()` is the command, `end()` comes after it.
// { made: [call, ...], states: [{ where, dir, tree }, ...] }: each state that differs from the one before.
async function copied(w, g, { start, act, end }) {
  const at = path.join(w.dir, `states-${count++}`);
  fs.mkdirSync(at);
  await start({
    LD_PRELOAD: await stopperPath(),
    LANCEFS_STOP_ARMED: `${at}.armed`,
    LANCEFS_STOP_COUNT: `${at}.counts`,
    LANCEFS_STOP_COPIES: at,
    LANCEFS_STOP_ROOT: g.ds,
  });
  fs.writeFileSync(`${at}.armed`, "0\n");
  await act();
  fs.rmSync(`${at}.armed`);
  await end();
  const made = fs.existsSync(`${at}.counts`) ? calls(g, `${at}.counts`) : [],
    states = [];
  let last;
  await must(run("cp", ["-a", g.ds, path.join(at, `${made.length + 1}`)]));
  for (const [i, call] of [...made, "the end"].entries()) {
    const dir = path.join(at, `${i + 1}`);
    if (!fs.existsSync(dir)) continue; // a flush
    const tree = treeOf(dir),
      key = keyOf(tree);
    if (key !== last) states.push({ where: `before call ${i + 1} of ${made.length}, ${call}`, dir, tree });
    last = key;
  }
  return { made, states };
}

// Of a command to a mount: `before(m)` and `act(m)`.
export function statesOfCommand(w, g, { before, act }) {
  let m;
  return copied(w, g, {
    start: async (env) => {
      m = await mount(w, g.ds, { env });
      await before?.(m);
    },
    act: () => act(m),
    end: () => m.unmount(),
  });
}

// Of fsck.lancefs with these words.
export function statesOfCheck(w, g, words) {
  let env;
  return copied(w, g, {
    start: async (e) => (env = e),
    act: () => run(FSCK, [...words, g.ds], { env }),
    end: async () => {},
  });
}

// At most `n` of a list, evenly chosen, with the first and the last.
export const some = (list, n) =>
  list.length <= n ? list : Array.from({ length: n }, (_, i) => list[Math.round((i * (list.length - 1)) / (n - 1))]);
