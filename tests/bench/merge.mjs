// SPDX-License-Identifier: Apache-2.0
// Merges into tables of many fragments, against what stock Lance takes to commit an append to the same table; a merge of
// 200 commits against a merge of one; the daemon's memory against its bound.
import fs from "node:fs";
import path from "node:path";
import { ENGINES } from "../interop/engines.mjs";
import { rows } from "../harness/rows.mjs";
import { command, inTurns, mounted, peakMemory, report, ROUNDS, SIZES, stockTimer, timed, withWorkspace } from "./lib.mjs";

const COMMITS = 200, // of the branch `long`
  COMMITS_MAX_SIZE = 20_000, // each writes a whole manifest: with more fragments it takes too long to make
  CACHE_MIB = 64;

let next = 1_000_000;
const row = () => rows(next++, 1);
const merging = (g, target, line) => timed(() => command(g.m.tree(target, ".merge"), line));

// A commit of feature into main, which has moved too, while stock Lance appends to main.
async function mergeOfOne(w, engine, size, sync) {
  const stock = stockTimer(engine),
    g = await mounted(w, "big_manifest", engine, { args: [size], options: [sync] });
  await stock.append(g.ds, "main", row());
  await merging(g, "main", "feature"); // the first makes directories
  const [ours, theirs] = await inTurns(
    [() => merging(g, "main", "feature"), () => stock.append(g.ds, "main", row())],
    { between: () => stock.append(g.ds, "feature", row()) },
  );
  report({ name: `merge of one commit, ${sync}`, size, peer: `append by ${engine}`, ours, theirs, wanted: "<= 0.5" });
  if (sync === "sync") memory(g, size);
  await g.m.unmount();
  await stock.close();
}

function memory(g, size) {
  const versions = path.join(g.ds, "_versions"),
    largest = Math.max(...fs.readdirSync(versions).map((f) => fs.statSync(path.join(versions, f)).size));
  const bound = CACHE_MIB + (2 * largest) / 2 ** 20;
  report({
    name: "memory of the daemon, at most",
    size,
    peer: "64 MiB + 2 manifests",
    ours: [peakMemory(g.m.pid)],
    theirs: [bound],
    unit: "MiB",
    wanted: "<= 1",
  });
}

// Into branches that are alike, each once.
async function mergeOfMany(w, engine, size) {
  const stock = stockTimer(engine),
    rounds = Math.min(ROUNDS, 5),
    g = await mounted(w, "big_manifest", engine, { args: [size, COMMITS] });
  for (let r = 0; r < rounds; r++)
    for (const target of [`one${r}`, `many${r}`]) {
      await stock.fork(g.ds, target);
      await stock.append(g.ds, target, row());
    }
  const [ours, theirs] = await inTurns(
    [(r) => merging(g, `many${r}`, "long mode=link"), (r) => merging(g, `one${r}`, "feature mode=link")],
    { rounds },
  );
  report({ name: `merge of ${COMMITS} commits`, size, peer: "merge of one", ours, theirs, wanted: "<= 3" });
  await g.m.unmount();
  await stock.close();
}

export async function bench() {
  for (const size of SIZES)
    for (const engine of ENGINES) {
      for (const sync of ["sync", "nosync"]) await withWorkspace((w) => mergeOfOne(w, engine, size, sync));
      if (size <= COMMITS_MAX_SIZE) await withWorkspace((w) => mergeOfMany(w, engine, size));
    }
}
