// SPDX-License-Identifier: Apache-2.0
// Random histories by hand:
//   node run.mjs [--seed N] [--histories K] [--steps S] [--engine lance10|lance12] [--keep]
//   node run.mjs --replay FILE      the steps of a history.json, as they are
//   node run.mjs --shrink FILE      the same, and then with fewer and fewer steps
import fs from "node:fs";
import { parseArgs } from "node:util";
import { describe, Outcomes, runBatch, startEngines, STEPS, stopEngines } from "./batch.mjs";
import { runHistory } from "./history.mjs";
import { shrink } from "./shrink.mjs";

const text = { type: "string" };
const { values: option } = parseArgs({
  options: {
    ...{ seed: text, histories: text, steps: text, engine: text, replay: text, shrink: text },
    ...{ keep: { type: "boolean" }, verbose: { type: "boolean" } },
  },
});
const engines = startEngines(),
  outcomes = new Outcomes(),
  count = Number(option.steps ?? STEPS);
const failed = [];

function take(r) {
  outcomes.add(r);
  if (r.error) {
    failed.push(r.seed);
    console.log(`\n${describe(r, count)}\n`);
  } else if (option.keep) console.log(`history ${r.seed} kept in ${r.dir}`);
  if (option.verbose && !r.error) console.log(r.steps.map((s) => JSON.stringify(s)).join("\n"));
}

if (option.replay) {
  take(await runHistory({ ...JSON.parse(fs.readFileSync(option.replay)), engines, keep: option.keep }));
} else if (option.shrink) {
  const r = await shrink(JSON.parse(fs.readFileSync(option.shrink)), engines, console.log);
  if (r) take(r);
  else console.log("these steps do not fail");
} else {
  const first = Number(option.seed ?? 1),
    n = Number(option.histories ?? 1);
  const seeds = Array.from({ length: n }, (_, i) => first + i);
  await runBatch(seeds, { count, engine: option.engine, engines, keep: option.keep, each: take });
}
console.log(outcomes.table());
if (failed.length) console.log(`failed: ${failed.join(" ")}`);
const complaint = outcomes.complaint();
if (complaint) console.log(complaint);
stopEngines(engines);
// At once: what the harness shares with the test runner would report on tests that are not there.
process.stdout.write("", () => process.exit(failed.length || complaint ? 1 : 0));
