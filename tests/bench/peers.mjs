// SPDX-License-Identifier: Apache-2.0
// A data set's directory shown by other file systems, to compare the mount with: those that are installed.
import fs from "node:fs";
import path from "node:path";
import { must, run } from "../harness/proc.mjs";
import { mount } from "../harness/mount.mjs";
import { there } from "./lib.mjs";

const PEERS = {
  bindfs: (dir, at) => ["bindfs", ["-r", "--multithreaded", dir, at]],
  "fuse-overlayfs": (dir, at, empty) => ["fuse-overlayfs", ["-o", `lowerdir=${dir}:${empty}`, at]],
};

// The peers' mounts of `dir`: [{ name, root, again() }]; again() mounts it anew.
async function others(w, dir) {
  const out = [];
  for (const [name, command] of Object.entries(PEERS)) {
    const at = path.join(w.dir, `peer-${name}`),
      empty = path.join(w.dir, "empty");
    if (!(await there(name))) {
      console.log(`${name} is not installed: left out`);
      continue;
    }
    fs.mkdirSync(at, { recursive: true });
    fs.mkdirSync(empty, { recursive: true });
    const up = () => must(run(...command(dir, at, empty))),
      down = () => must(run("fusermount3", ["-uz", at]));
    await up();
    w.defer(down);
    out.push({ name, root: at, again: () => down().then(up) });
  }
  return out;
}

// lancefs in its two ways to read: the same shape, `root` is the directory of main.
async function own(w, ds, name, options) {
  const one = { name, m: await mount(w, ds, { options }) };
  one.root = one.m.tree("main");
  one.again = async () => {
    const at = one.m.mnt;
    await one.m.unmount();
    one.m = await mount(w, ds, { options, at });
  };
  return one;
}

// { native, passthrough, cached, others }
export async function shown(w, ds) {
  return {
    native: { name: "native", root: ds, again: async () => {} },
    passthrough: await own(w, ds, "lancefs", []),
    cached: await own(w, ds, "lancefs, passthrough=off", ["passthrough=off"]),
    others: await others(w, ds),
  };
}

// Rows of a table: lancefs in both ways against native, and without passthrough against the others.
// times: Map of contestant -> milliseconds, round by round.
export function rowsOf(s, times) {
  const rows = [
    [s.passthrough, s.native],
    [s.cached, s.native],
    ...s.others.map((o) => [s.cached, o]),
  ];
  return rows.map(([a, b]) => ({ how: a === s.cached ? "cached" : "passthrough", peer: b.name, ours: times.get(a), theirs: times.get(b) }));
}
