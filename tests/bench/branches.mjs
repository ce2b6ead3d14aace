// SPDX-License-Identifier: Apache-2.0
// A branch made by mkdir against stock Lance's own creation of one, and what .gc takes beside an append of stock Lance, by
// the number of fragments.
import fs from "node:fs";
import path from "node:path";
import { ENGINES } from "../interop/engines.mjs";
import { rows } from "../harness/rows.mjs";
import { command, inTurns, mounted, report, SIZES, ROUNDS, stockTimer, timed, withWorkspace } from "./lib.mjs";

let next = 3_000_000;

async function branches(w, engine, size) {
  const stock = stockTimer(engine),
    g = await mounted(w, "big_manifest", engine, { args: [size] });
  const [ours, theirs] = await inTurns([
    (r) => timed(() => fs.mkdirSync(g.m.tree(`made${r}`))),
    (r) => stock.create(g.ds, `stock${r}`),
  ]);
  report({ name: "branch creation", size, peer: `branches.create, ${engine}`, ours, theirs, wanted: "<= 0.5" });
  const [gc, append] = await inTurns(
    [
      () => timed(() => command(path.join(g.m.mnt, ".gc"), "older-than=7d")),
      () => stock.append(g.ds, "main", rows(next++, 1)),
    ],
    { rounds: Math.min(ROUNDS, 5) },
  );
  report({ name: ".gc with nothing to remove", size, peer: `append by ${engine}`, ours: gc, theirs: append });
  await g.m.unmount();
  await stock.close();
}

export async function bench() {
  for (const size of SIZES) for (const engine of ENGINES) await withWorkspace((w) => branches(w, engine, size));
}
