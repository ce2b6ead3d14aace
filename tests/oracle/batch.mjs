// SPDX-License-Identifier: Apache-2.0
// Many histories, a few at a time, and what came of their merges.
import os from "node:os";
import { ENGINES } from "../interop/engines.mjs";
import { start } from "./engine.mjs";
import { runHistory } from "./history.mjs";

export const STEPS = 26;
export const engineOf = (seed) => ENGINES[seed % ENGINES.length];
export const startEngines = () => Object.fromEntries(ENGINES.map((e) => [e, start(e)]));
export const stopEngines = (engines) => Object.values(engines).forEach((e) => e.stop());

// Refusing everything, or calling it all a conflict out of caution, must not pass: no more than this share of each verb.
const MOST_REFUSED = 0.2,
  MOST_CAUTIOUS = 0.05;

export class Outcomes {
  counts = new Map(); // "verb: outcome" -> how often
  histories = 0;
  add({ outcomes }) {
    this.histories++;
    for (const [name, n] of outcomes) this.counts.set(name, (this.counts.get(name) ?? 0) + n);
  }
  #sum = (prefix) => [...this.counts].reduce((sum, [name, n]) => sum + (name.startsWith(prefix) ? n : 0), 0);
  verbs = () => [...new Set([...this.counts.keys()].filter((x) => !x.startsWith("(")).map((x) => x.split(":")[0]))];
  #share = (verb, outcome) => this.#sum(`${verb}: ${outcome}`) / (this.#sum(`${verb}:`) || 1);
  table() {
    const lines = [...this.counts].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${String(n).padStart(7)}  ${name}`);
    const verb = (v) => `${this.#sum(`${v}:`)} ${v} (${(this.#share(v, "refused") * 100).toFixed(1)} % refused)`;
    return [`${this.histories} histories: ${this.verbs().map(verb).join(", ")}`, ...lines].join("\n");
  }
  // What is wrong with the whole; undefined for nothing. A handful of commands tells nothing about shares.
  complaint() {
    for (const verb of this.verbs()) {
      if (this.#sum(`${verb}:`) < 200) continue;
      const refused = this.#share(verb, "refused"),
        cautious = this.#share(verb, "cautious");
      if (refused > MOST_REFUSED) return `more than ${MOST_REFUSED * 100} % of ${verb} were refused`;
      if (cautious > MOST_CAUTIOUS) return `more than ${MOST_CAUTIOUS * 100} % of ${verb} were conflicts out of caution`;
      if (!(this.#share(verb, "merged") > 0.1)) return `hardly any ${verb} came through`;
    }
    return undefined;
  }
}

const featuresOf = (traits) => Object.keys(traits).filter((t) => traits[t]).join() || "plain";
const say = (step) => JSON.stringify(step);
// What somebody needs who looks into a history that failed.
export function describe({ seed, engine, traits, dir, steps, error }, count = STEPS) {
  return [
    `history ${seed}, written by ${engine}${Object.keys(traits).filter((t) => traits[t]).map((t) => `, ${t}`).join("")}: ${error.stack ?? error.message}`,
    "steps:",
    ...steps.map((s, i) => `  ${i + 1}. ${say(s)}`),
    `data set and steps kept in ${dir}`,
    `again: LANCEFS_FEATURES=${featuresOf(traits)} node tests/oracle/run.mjs --seed ${seed} --steps ${count} --engine ${engine}`,
    `the same steps, fewer and fewer: node tests/oracle/run.mjs --shrink ${dir}/history.json`,
  ].join("\n");
}

// Runs histories for these seeds, as many at a time as there are processors; each(result) hears of every one.
export async function runBatch(seeds, { count = STEPS, engine, engines, keep, each, width = os.availableParallelism() }) {
  const left = [...seeds];
  const worker = async () => {
    for (let seed; (seed = left.shift()) !== undefined; )
      await each(await runHistory({ seed, count, engine: engine ?? engineOf(seed), engines, keep }));
  };
  await Promise.all(Array.from({ length: width }, worker));
}
