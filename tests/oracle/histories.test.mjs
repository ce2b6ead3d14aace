// SPDX-License-Identifier: Apache-2.0
// Random histories against the model: LANCEFS_HISTORIES of them (100), from seed LANCEFS_SEED (1) on. A failure names its
// seed, its steps and the command that makes it again.
import { after, describe as suite, test } from "node:test";
import assert from "node:assert/strict";
import os from "node:os";
import { describe, engineOf, Outcomes, startEngines, STEPS, stopEngines } from "./batch.mjs";
import { runHistory } from "./history.mjs";

const first = Number(process.env.LANCEFS_SEED ?? 1),
  number = Number(process.env.LANCEFS_HISTORIES ?? 100);
const engines = startEngines(),
  outcomes = new Outcomes();
after(() => stopEngines(engines));

suite("random histories", { concurrency: os.availableParallelism() }, () => {
  for (let seed = first; seed < first + number; seed++)
    test(`seed ${seed}, written by ${engineOf(seed)}`, async () => {
      const r = await runHistory({ seed, count: STEPS, engine: engineOf(seed), engines });
      outcomes.add(r);
      if (r.error) assert.fail(describe(r));
    });
});

test("the merges of all histories: enough came through", (t) => {
  for (const line of outcomes.table().split("\n")) t.diagnostic(line);
  assert.equal(outcomes.complaint(), undefined, outcomes.table());
});
