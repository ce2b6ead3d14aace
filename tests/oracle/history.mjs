// SPDX-License-Identifier: Apache-2.0
// One history: a data set, a mount, steps by a stock engine and commands to control files, each checked against the model.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { previewError, previewOf } from "../harness/previews.mjs";
import { run } from "../harness/proc.mjs";
import { expectRows } from "../harness/rows.mjs";
import { difference, ENGINES, place, snapshot } from "../harness/workspace.mjs";
import { configure } from "../interop/configure.mjs";
import { tip as newest } from "../interop/manifest.mjs";
import { addressOf, checkIds, expectLineage, expectMaps, mapsOf, uuidOf } from "./checks.mjs";
import { judge } from "./judge.mjs";
import { Model, shown } from "./model.mjs";
import { random } from "./random.mjs";
import { judgeSeries, planOf, SERIES } from "./series.mjs";
import { drawStep, policyOf, traitsOf } from "./steps.mjs";
import { COLUMNS, newRow, STOCK } from "./stock.mjs";
import { VERBS } from "./verbs.mjs";

// An engine's error, with what it was about.
const told = (where, promise) =>
  promise.catch((e) => {
    throw new Error(`${where}: ${e.message}`);
  });
const tokens = (rows) => [...rows.keys()].sort().join(" ");

class History {
  constructor(config) {
    Object.assign(this, config); // seed, engine, engines, traits, w
    this.done = []; // steps as they were made, for a replay
    this.outcomes = new Map();
    this.addresses = new Map(); // token -> every place where that row was ever seen
    this.reads = 0;
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
    const storageOptions = this.traits.stable ? { new_table_enable_stable_row_ids: "true" } : undefined;
    const made = await this.writer.create({ dir, rows: rows.map((x) => x.values), storageOptions });
    this.model = new Model(new Map(rows.map((x) => [x.tok, x])), COLUMNS, made.version, mapsOf(dir));
    this.model.lines.get("main").uuid = "main";
    this.note(this.model.tip("main"), made.at);
    this.m = await mount(this.w, dir, { options: ["nosync"] });
  }
  // `at`: [token, row id] of each row of a state.
  note(state, at) {
    state.ids = new Map(at);
    for (const [tok, id] of at) {
      if (!this.addresses.has(tok)) this.addresses.set(tok, new Set());
      this.addresses.get(tok).add(addressOf(id));
    }
  }
  count(outcome) {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  async step({ outcome: _, ...step }) {
    this.done.push(step);
    if (STOCK[step.kind]) return this.commit(step);
    if (SERIES[step.kind]) return this.series(step);
    return VERBS[step.kind] ? this.command(step, VERBS[step.kind]) : this[step.kind](step);
  }

  async commit(step) {
    if (!this.model.branches.has(step.branch)) return;
    const effect = STOCK[step.kind].effect(step, this.model);
    if (!effect) return;
    const { args, how, ...after } = effect,
      line = this.model.branches.get(step.branch),
      before = line.tip,
      where = `a stock ${step.kind} on ${step.branch}`;
    if (step.kind === "configure") configure(this.storage(step.branch), args);
    const op = step.kind === "configure" ? "look" : step.kind;
    const r = await told(where, this.writer.commit({ dir: this.ds, branch: step.branch, op, args: args ?? {} }));
    const expected = after.rows ?? before.rows;
    assert.equal(r.at.map((x) => x[0]).sort().join(" "), tokens(expected), `rows after ${where}`);
    const compacted = r.value ? { op: "compact" } : {};
    if (r.version > before.number) {
      if (after.maps) expectMaps(this.storage(step.branch), after.maps, `maps after ${where}`);
      const maps = mapsOf(this.storage(step.branch)); // what a restore or an overwrite makes of them is for stock to say
      this.model.commit(step.branch, r.version, how ?? step.kind, { ...after, maps, ...compacted });
    }
    this.note(line.tip, r.at);
    for (const [tok, { from }] of line.tip.rows)
      if (from && before.ids?.get(from) === line.tip.ids.get(tok)) this.model.keptId.add(tok);
    if (step.kind !== "clean") return;
    line.oldest = r.version;
    this.cleaned = true;
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
    const { ids } = from,
      made = this.model.fork(step.branch, from, `${step.branch}#${this.lines}`);
    made.ids = ids;
    made.line.uuid = uuidOf(this.ds, step.branch);
  }

  async drop(step) {
    const line = this.model.branches.get(step.branch);
    if (!line || this.model.children(line).length) return;
    await this.writer.drop({ dir: this.ds, name: step.branch });
    this.model.drop(step.branch);
    if (step.again) await this.fork({ branch: step.branch, from: "main" });
  }

  async command(step, verb) {
    const { target } = step;
    if (!this.model.branches.has(target)) return;
    const ours = this.model.tip(target),
      policy = policyOf(step.options),
      said = verb(this.model, step, ours, policy, (...where) => this.state(...where));
    if (!said) return;
    const { file, words, p } = said,
      files = snapshot(this.ds);
    const looked = await this.look(step, words, files);
    const control = step.root ? path.join(this.m.mnt, file) : this.m.tree(target, file);
    const r = await ctl(control, [words, ...(step.root ? [target] : []), ...step.options].filter(Boolean).join(" "));
    const { outcome, wrote } = judge(r, this.know(p), { ours, ...this.context(step) });
    this.count(`${step.kind}: ${outcome}`);
    step.outcome = outcome;
    if (process.env.LANCEFS_TOLD) console.log(r.answer.text.replace(/^#.*\n/gm, ""));
    if (looked && r.code !== 0) assert.equal(looked.errno, r.errno, `the preview of a merge that failed (${outcome})`);
    if (wrote) return this.written(step, ours, p, { version: Number(r.answer.version), looked });
    if (looked?.seen && r.answer.result === "up-to-date") expectRows(looked.seen, shown(ours.rows, ours.columns), looked.where);
    const changed = difference(files, snapshot(this.ds));
    assert.deepEqual(changed, [], `a command that wrote no version (${outcome}) changed files`);
  }

  // Every other merge is seen first: what its preview holds, or why there is none. Nothing is written.
  async look(step, words, files) {
    if (step.kind !== "merge" || (this.seed + this.done.length) % 2) return undefined;
    const line = [words, ...step.options.filter((o) => o !== "dry-run")].join(" "),
      dir = previewOf(this, step.target, line),
      errno = await previewError(this, step.target, line),
      reader = this.engines[ENGINES[this.reads++ % ENGINES.length]],
      where = `${path.relative(this.m.mnt, dir)}, read by ${reader.engine}`;
    const seen = errno ? undefined : await told(where, reader.read({ dir }));
    assert.deepEqual(difference(files, snapshot(this.ds)), [], "a preview changed files");
    this.count(`(a preview: ${errno ?? "read"})`);
    return { errno, seen, where };
  }

  // Several versions by one command.
  async series(step) {
    if (!this.model.branches.has(step.target)) return;
    const ours = this.model.tip(step.target),
      plan = planOf(this.model, step, ours, policyOf(step.options));
    if (!plan) return;
    const files = snapshot(this.ds),
      r = await ctl(this.m.tree(step.target, plan.file), [plan.words, ...step.options].join(" "));
    const outcome = await judgeSeries(this.model, r, plan, ours, {
      ...this.context(step),
      know: (p) => this.know(p),
      written: (now, p, { version, result }, last) => {
        this.count(`(a version by ${step.kind}: ${result})`);
        return this.written(step, now, p, { version, op: plan.op, last });
      },
    });
    this.count(`${step.kind}: ${outcome}`);
    step.outcome = outcome;
    assert.equal(newest(this.storage(step.target)), this.model.tip(step.target).number, "as many versions as were told");
    if (this.model.tip(step.target) === ours)
      assert.deepEqual(difference(files, snapshot(this.ds)), [], `a command that wrote no version (${outcome}) changed files`);
  }

  // What the judge is told beside what the model says.
  know(p) {
    p.stable = this.traits.stable;
    p.model = this.model;
    p.anyCleaned = this.cleaned; // of whatever line: an undo goes back to before merges of it
    return p;
  }
  context = ({ kind, options }) => ({ verb: kind, options, addresses: this.traits.stable ? undefined : this.addresses });

  // A version was written: these rows, and what it holds of other lines. One that is not the last of its command is read by
  // its number.
  async written(step, ours, p, { version, looked, op = step.kind, last = true }) {
    const { target } = step;
    if (last) assert.equal(newest(this.storage(target)), ours.number + 1, "the version that was written");
    assert.equal(version, ours.number + 1, "the version that was told");
    const reader = this.engines[ENGINES[this.reads++ % ENGINES.length]],
      where = `${target}${last ? "" : `@${version}`} after the ${step.kind}, read by ${reader.engine}`,
      place = last ? { dir: this.ds, branch: target } : { dir: this.m.tree(target, ".versions", `${version}`), branch: "main" };
    const seen = await told(where, reader.read({ ...place, addressed: true }));
    const there = new Set(seen.at.map((x) => x[0]));
    let settled = p.settled && !p.settled.stuck ? p.settled : p;
    // A commit that replaced the table, picked onto one that only lacks what it threw away, is taken as a whole.
    const { rows: theirs } = p.theirsState;
    if (p.theirs.replaced && there.size === theirs.size && [...there].every((tok) => theirs.has(tok)))
      settled = { rows: theirs, open: new Set() };
    const rows = new Map(settled.rows);
    for (const tok of settled.open) {
      this.count(`(presence of a row left open: ${there.has(tok) ? "there" : "gone"})`);
      step.open = [...(step.open ?? []), [tok, there.has(tok)]];
      if (!there.has(tok)) rows.delete(tok);
    }
    expectRows(seen, shown(rows, p.columns), where);
    if (looked) expectRows(looked.seen ?? assert.fail(`${looked.where}: ${looked.errno}`), shown(rows, p.columns), looked.where);
    if (last) expectMaps(this.storage(target), p.maps, `maps of ${where}`);
    const index = ours.index ?? (p.theirsState.index && p.oursIsBase ? "own" : undefined);
    const state = this.model.written(target, op, p, rows, ours.number + 1, { index });
    if (last) expectLineage(this.storage(target), state, this.model, `lineage of ${where}`);
    this.note(state, seen.at);
    if (this.traits.stable) checkIds(this.model, ours, state, where);
  }

  // Every tip by both engines: from the storage, and as its directory and its table on the mount.
  async end() {
    for (const name of this.model.branches.keys()) {
      const { rows, columns, maps } = this.model.tip(name),
        expected = shown(rows, columns);
      expectMaps(this.storage(name), maps, `maps of ${name} at the end`);
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

// Makes a history of `count` steps that the seed draws, or of exactly `steps`. Gives { outcomes, steps, error, dir }; with
// an error (or `keep`) the folder stays.
export async function runHistory({ seed, count, steps, traits, engine, engines, keep = false }) {
  const dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), `lancefs-history-${seed}-`)),
    undo = [];
  traits ??= traitsOf(random(seed, 1000));
  const h = new History({ seed, engine, engines, traits, w: { dir, defer: (fn) => undo.push(fn) } });
  const out = { seed, engine, traits, dir, steps: h.done, outcomes: h.outcomes };
  try {
    await h.begin();
    for (let i = 0; i < (steps?.length ?? count); i++)
      await h.step(steps?.[i] ?? drawStep(random(seed, i + 1), h.model, i + 1, traits, SERIES));
    await h.end();
  } catch (e) {
    out.error = e;
  }
  for (const fn of undo.reverse()) await fn().catch((e) => (out.error ??= e));
  if (out.error || keep)
    fs.writeFileSync(path.join(dir, "history.json"), JSON.stringify({ seed, engine, traits, steps: h.done }, null, 1));
  else await run("rm", ["-rf", "--one-file-system", dir]);
  return out;
}
