// SPDX-License-Identifier: Apache-2.0
// Reads of one large data file, with and without kernel passthrough, against the same reads beside the mount and through
// other FUSE file systems. What the base's page cache holds is warm throughout; "mount cold" drops the mount's own copy.
import fs from "node:fs";
import path from "node:path";
import { randomBytes } from "node:crypto";
import { must, run } from "../harness/proc.mjs";
import { readerPath } from "../harness/workspace.mjs";
import { inTurns, mounted, report, ROUNDS, withWorkspace } from "./lib.mjs";
import { rowsOf, shown } from "./peers.mjs";

const MIB = 2 ** 20,
  SIZE = Number(process.env.LANCEFS_BENCH_MIB ?? 256) * MIB;

// [what, mode, block, blocks, readers, mount cold, wanted with passthrough, wanted without]
const CASES = [
  ["sequential, warm", "seq", MIB, SIZE / MIB, 1, false, "<= 1.05", "<= 2.5"],
  ["sequential, mount cold", "seq", MIB, SIZE / MIB, 1, true, "<= 1.05", ""],
  ["random 64 KiB, warm", "random", 65536, 2000, 1, false, "<= 1.05", ""],
  ["random 4 KiB, warm", "random", 4096, 20_000, 1, false, "<= 1.15", ""],
  ["random 4 KiB, mount cold", "random", 4096, 5000, 1, true, "<= 1.15", ""],
  ["random 4 KiB, 4 readers, mount cold", "random", 4096, 3000, 4, true, "<= 1.15", ""],
];

function makeFile(file) {
  const fd = fs.openSync(file, "w"),
    piece = randomBytes(MIB);
  for (let at = 0; at < SIZE; at += MIB) fs.writeSync(fd, piece);
  fs.closeSync(fd);
}

export async function bench() {
  await withWorkspace(async (w) => {
    const g = await mounted(w, "big_manifest", "lance12", { args: [3] }),
      reader = await readerPath(),
      file = path.join("data", "big.lance");
    makeFile(path.join(g.ds, file));
    const s = await shown(w, g.ds),
      all = [s.native, s.passthrough, s.cached, ...s.others];
    for (const [what, mode, block, blocks, readers, cold, wanted, wantedCached] of CASES) {
      const contestants = all.map((c) => async () => {
        const args = [path.join(c.root, file), mode, block, blocks, readers, ...(cold && c !== s.native ? ["drop"] : [])];
        return Number((await must(run(reader, args.map(String)))).stdout);
      });
      for (const c of contestants) await c(); // what is warm is warm
      const times = await inTurns(contestants, { rounds: Math.min(ROUNDS, 9) });
      for (const { how, ...row } of rowsOf(s, new Map(all.map((c, i) => [c, times[i]]))))
        report({
          name: `${what} (${how})`,
          size: `${SIZE / MIB} MiB`,
          ...row,
          wanted: row.peer !== "native" ? (/4 KiB, mount cold/.test(what) && row.peer === "fuse-overlayfs" ? "<= 0.5" : "") : how === "cached" ? wantedCached : wanted,
        });
    }
    await g.m.unmount();
  });
}
