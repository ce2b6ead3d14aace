// SPDX-License-Identifier: Apache-2.0
// One history: a data set, a mount, steps by a stock engine and merges by control files, each checked against the model.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { run } from "../harness/proc.mjs";
import { expectRows } from "../harness/rows.mjs";
import { difference, ENGINES, place, snapshot } from "../harness/workspace.mjs";
import { tip as newest } from "../interop/manifest.mjs";
import { judge } from "./judge.mjs";
import { Model, shown } from "./model.mjs";
import { random } from "./random.mjs";
import { COLUMNS, drawStep, newRow, OTHER, STOCK } from "./steps.mjs";

// An engine's error, with what it was about.
const told = (where, promise) =>
  promise.catch((e) => {
    throw new Error(`${where}: ${e.message}`);
  });
const tokens = (rows) => [...rows.keys()].sort().join(" ");

class History {
  constructor(config) {
    Object.assign(this, config); // seed, engine, engines, w, steps or count
    this.done = []; // steps as they were made, for a replay
    this.outcomes = new Map();
    this.addresses = new Map(); // token -> every place where that row was ever seen
    this.merges = 0;
  }
  get writer() {
    return this.engines[this.engine];
  }

  async begin() {
    const r = random(this.seed, 0),
      n = r.int(5, 15),
      dir = path.join(this.w.dir, "t.lance");
    Object.assign(this, place(dir));
    const rows = Array.from({ length: n }, (_, i) => newRow(i, `t${i}`));
    const made = await this.writer.create({ dir, rows: rows.map((x) => x.values) });
    this.model = new Model(new Map(rows.map((x) => [x.tok, x])), COLUMNS, made.version);
    this.note(made.at);
    this.m = await mount(this.w, dir, { options: ["nosync"] });
  }
  note(at) {
    for (const [tok, address] of at) {
      if (!this.addresses.has(tok)) this.addresses.set(tok, new Set());
      this.addresses.get(tok).add(address);
    }
  }
  count(outcome) {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  async step({ outcome: _, ...step }) {
    this.done.push(step);
    if (STOCK[step.kind]) return this.commit(step);
    return this[step.kind](step);
  }

  async commit(step) {
    if (!this.model.branches.has(step.branch)) return;
    const effect = STOCK[step.kind].effect(step, this.model);
    if (!effect) return;
    const { args, how, ...after } = effect,
      line = this.model.branches.get(step.branch),
      before = line.tip;
    const r = await told(
      `a stock ${step.kind} on ${step.branch}`,
      this.writer.commit({ dir: this.ds, branch: step.branch, op: step.kind, args: args ?? {} }),
    );
    const expected = after.rows ?? before.rows;
    assert.equal(r.at.map((x) => x[0]).sort().join(" "), tokens(expected), `rows after a stock ${step.kind}`);
    this.note(r.at);
    const compacted = r.value ? { op: "compact" } : {};
    if (r.version > before.number) this.model.commit(step.branch, r.version, how ?? step.kind, { ...after, ...compacted });
    if (step.kind !== "clean") return;
    line.oldest = r.version;
    for (const s of line.states.values()) if (s.number < r.version) s.cleaned = true;
  }

  state(name, back) {
    const line = this.model.branches.get(name),
      number = line.tip.number - (back ?? 0);
    return number < (line.oldest ?? 0) ? line.tip : (line.states.get(number) ?? line.tip);
  }

  async fork(step) {
    if (this.model.branches.has(step.branch) || !this.model.branches.has(step.from)) return;
    const from = this.state(step.from, step.back);
    if (from.index === "inherited") return; // a stock branch of it would point at a wrong place
    await this.writer.fork({ dir: this.ds, name: step.branch, from: step.from, version: from.number });
    this.lines = (this.lines ?? 0) + 1;
    this.model.fork(step.branch, from, `${step.branch}#${this.lines}`);
  }

  async drop(step) {
    const line = this.model.branches.get(step.branch);
    if (!line || this.model.children(line).length) return;
    await this.writer.drop({ dir: this.ds, name: step.branch });
    this.model.drop(step.branch);
    if (step.again) await this.fork({ branch: step.branch, from: "main" });
  }

  // The words of a merge, as somebody might write them.
  words(step, source) {
    const line = this.model.branches.get(step.source);
    const name = `${step.tree ? "tree/" : ""}${step.source}${source === line.tip ? "" : `@${source.number}`}`;
    return [name, ...(step.root ? [step.target] : []), ...step.options].join(" ");
  }

  async merge(step) {
    const { target, source } = step;
    if (!this.model.branches.has(target) || !this.model.branches.has(source)) return;
    const ours = this.model.tip(target),
      theirs = this.state(source, step.back);
    const p = this.model.predict(ours, theirs),
      files = snapshot(this.ds);
    const file = step.root ? path.join(this.m.mnt, ".merge") : this.m.tree(target, ".merge");
    const r = await ctl(file, this.words(step, theirs));
    this.merges++;
    this.model.lastMerge = { target, source };
    const { outcome, wrote } = judge(r, p, { ours, options: step.options, addresses: this.addresses });
    this.count(outcome);
    step.outcome = outcome;
    if (!wrote) {
      assert.deepEqual(difference(files, snapshot(this.ds)), [], `a merge that wrote no version (${outcome}) changed files`);
      return;
    }
    assert.equal(newest(this.storage(target)), ours.number + 1, "the version that was written");
    assert.equal(Number(r.answer.version), ours.number + 1, "the version that was told");
    const reader = this.engines[ENGINES[this.merges % ENGINES.length]];
    const where = `${target} after the merge, read by ${reader.engine}`;
    const seen = await told(where, reader.read({ dir: this.ds, branch: target, addressed: true }));
    this.note(seen.at);
    const rows = new Map(p.rows),
      there = new Set(seen.at.map((x) => x[0]));
    for (const tok of p.open) {
      this.count(`(presence of a row left open: ${there.has(tok) ? "there" : "gone"})`);
      step.open = [...(step.open ?? []), [tok, there.has(tok)]];
      if (!there.has(tok)) rows.delete(tok);
    }
    expectRows(seen, shown(rows, p.columns), where);
    const index = ours.index ?? (theirs.index && p.oursIsBase ? "own" : undefined);
    this.model.merged(target, theirs, p, rows, ours.number + 1, { index });
  }

  // Every tip by both engines: from the storage, and as its directory and its table on the mount.
  async end() {
    for (const name of this.model.branches.keys()) {
      const { rows, columns } = this.model.tip(name),
        expected = shown(rows, columns);
      // LanceDB takes no table name with a percent sign, so a branch with a slash has one way in only.
      const views = [this.m.tree(name), ...(name.includes("/") ? [] : [this.m.table(name)])];
      const places = [{ dir: this.ds, branch: name }, ...views.map((dir) => ({ dir }))];
      for (const e of ENGINES)
        for (const place of places) {
          const where = `${place.branch ? `${name} in the storage` : path.relative(this.w.dir, place.dir)}, read by ${e}`;
          expectRows(await told(where, this.engines[e].read(place)), expected, where);
        }
    }
    await this.m.unmount();
  }
}

// Makes a history of `count` steps that the seed draws, or of exactly `steps`. Gives { outcomes, merges, steps, error,
// dir }; with an error (or `keep`) the folder stays.
export async function runHistory({ seed, count, steps, engine, engines, keep = false }) {
  const dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), `lancefs-history-${seed}-`)),
    undo = [];
  const h = new History({ seed, engine, engines, w: { dir, defer: (fn) => undo.push(fn) } });
  const out = { seed, engine, dir, steps: h.done, outcomes: h.outcomes };
  try {
    await h.begin();
    for (let i = 0; i < (steps?.length ?? count); i++)
      await h.step(steps?.[i] ?? drawStep(random(seed, i + 1), h.model, i + 1));
    await h.end();
  } catch (e) {
    out.error = e;
  }
  for (const fn of undo.reverse()) await fn().catch((e) => (out.error ??= e));
  out.merges = h.merges;
  if (out.error || keep)
    fs.writeFileSync(path.join(dir, "history.json"), JSON.stringify({ seed, engine, steps: h.done }, null, 1));
  else await run("rm", ["-rf", "--one-file-system", dir]);
  return out;
}
