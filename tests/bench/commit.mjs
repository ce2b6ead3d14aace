// SPDX-License-Identifier: Apache-2.0
// A commit through the mount against the same commit on the storage: stock Lance appends one row to a table of many
// fragments, in turns to two branches that are alike. What a commit through the mount costs besides: requests of the
// kernel, each of them two switches between processes (on a busy machine they are what the ratio is made of), and
// processor time of the daemon. Stock Lance flushes nothing: `nosync` is the same promise as on the storage, `sync` is more.
import fs from "node:fs";
import path from "node:path";
import { ENGINES } from "../interop/engines.mjs";
import { rows } from "../harness/rows.mjs";
import { inTurns, mounted, report, SIZES, stockTimer, withWorkspace } from "./lib.mjs";

let next = 1_000_000;
const row = () => rows(next++, 1);

// Requests that the mount has handled, and milliseconds of processor time that its daemon has used.
function spent(m) {
  const stats = fs.readFileSync(path.join(m.mnt, ".stats"), "utf8"),
    counts = [...stats.matchAll(/^lancefs_operation_seconds_count\{.*\} (\d+)$/gm)].map(([, n]) => Number(n)),
    times = fs.readFileSync(`/proc/${m.pid}/stat`, "utf8").split(") ").at(-1).split(" "), // proc(5), from field 3
    TICK_MS = 10;
  return { requests: counts.reduce((a, b) => a + b, 0), ms: (Number(times[11]) + Number(times[12])) * TICK_MS };
}

async function commits(w, engine, size, sync) {
  const stock = stockTimer(engine),
    g = await mounted(w, "big_manifest", engine, { args: [size], options: [sync] });
  for (const branch of ["through", "beside"]) await stock.fork(g.ds, branch);
  const through = () => stock.append(g.m.table("through"), "main", row()),
    beside = () => stock.append(g.ds, "beside", row());
  await through(); // the first makes directories
  await beside();
  const before = spent(g.m),
    [ours, theirs] = await inTurns([through, beside]),
    after = spent(g.m),
    each = (what) => ((after[what] - before[what]) / ours.length).toFixed(1);
  report({ name: `append through the mount, ${sync}`, size, peer: `on the storage, ${engine}`, ours, theirs, wanted: "<= 2" });
  console.log(`  each: ${each("requests")} requests, ${each("ms")} ms of the daemon's processor time`);
  await g.m.unmount();
  await stock.close();
}

export async function bench() {
  for (const size of SIZES)
    for (const engine of ENGINES)
      for (const sync of ["sync", "nosync"]) await withWorkspace((w) => commits(w, engine, size, sync));
}
