// SPDX-License-Identifier: Apache-2.0
// Walks over the 20,000 files of a table, and opening each of them, against the same beside the mount and through other
// FUSE file systems. "Cold" is the first look after mounting; the disk's own cache is warm.
import path from "node:path";
import { must, run } from "../harness/proc.mjs";
import { inTurns, mounted, report, ROUNDS, timed, withWorkspace } from "./lib.mjs";
import { rowsOf, shown } from "./peers.mjs";

const FILES = Number(process.env.LANCEFS_BENCH_FILES ?? 20_000);
const quiet = (program, ...args) => must(run("sh", ["-c", '"$@" > /dev/null', "sh", program, ...args], { limitMs: 600_000 }));
// [what, fn(directory), wanted warm, wanted cold]
const WALKS = [
  ["find", (dir) => quiet("find", dir, "-printf", "%f %s\\n"), "<= 1.4", "<= 2.0"],
  ["ls -lR", (dir) => quiet("ls", "-lR", dir), "<= 1.0", "<= 1.4"],
  ["open-read-close", (dir) => quiet("sh", "-c", 'cd "$1" && find . -type f -print0 | xargs -0 cat', "sh", dir), "<= 10", "<= 1.6"],
];

export async function bench() {
  await withWorkspace(async (w) => {
    const g = await mounted(w, "big_manifest", "lance12", { args: [FILES] }),
      s = await shown(w, g.ds),
      all = [s.native, s.passthrough, s.cached, ...s.others];
    for (const cold of [true, false])
      for (const [what, walk, warmWanted, coldWanted] of WALKS) {
        const contestants = all.map((c) => () => timed(() => walk(path.join(c.root, "data"))));
        if (!cold) for (const c of contestants) await c();
        const again = async () => {
          for (const c of all) await c.again();
        };
        const times = await inTurns(contestants, { rounds: Math.min(ROUNDS, 5), between: cold ? again : async () => {} });
        for (const { how, ...row } of rowsOf(s, new Map(all.map((c, i) => [c, times[i]]))))
          report({
            name: `${what}, ${cold ? "cold" : "warm"} (${how})`,
            size: FILES,
            ...row,
            wanted: row.peer === "native" ? (cold ? coldWanted : warmWanted) : "",
          });
      }
    await g.m.unmount();
  });
}
