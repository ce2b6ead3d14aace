// SPDX-License-Identifier: Apache-2.0
// A commit through the mount against the same commit on the storage: stock Lance appends one row to a table of many
// fragments, in turns to two branches that are alike.
import { ENGINES } from "../interop/engines.mjs";
import { rows } from "../harness/rows.mjs";
import { inTurns, mounted, report, SIZES, stockTimer, withWorkspace } from "./lib.mjs";

let next = 1_000_000;
const row = () => rows(next++, 1);

async function commits(w, engine, size, sync) {
  const stock = stockTimer(engine),
    g = await mounted(w, "big_manifest", engine, { args: [size], options: [sync] });
  for (const branch of ["through", "beside"]) await stock.fork(g.ds, branch);
  const through = () => stock.append(g.m.table("through"), "main", row()),
    beside = () => stock.append(g.ds, "beside", row());
  await through(); // the first makes directories
  await beside();
  const [ours, theirs] = await inTurns([through, beside]);
  report({ name: `append through the mount, ${sync}`, size, peer: `on the storage, ${engine}`, ours, theirs, wanted: "<= 2" });
  await g.m.unmount();
  await stock.close();
}

export async function bench() {
  for (const size of SIZES)
    for (const engine of ENGINES)
      for (const sync of ["sync", "nosync"]) await withWorkspace((w) => commits(w, engine, size, sync));
}
