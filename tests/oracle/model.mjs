// SPDX-License-Identifier: Apache-2.0
// What a data set must hold: plain rows, one object for each physical copy of a row, told apart by its token. Each
// version of each line is kept whole and for ever, together with what its commit took away and how. Compactions, indexes,
// clean-up and files do not exist here, but for the marks that say where a program may honestly know less.
//
// A row: { tok, from, values }; `from` is the token of the copy that an update replaced, `values` goes by column.
// Columns have an id of their own, which a rename keeps. Maps (config, table and schema metadata) are one Map of keys.
import { bases, descent, join, pickOf, uncovered, within } from "./lineage.mjs";
import { side, three } from "./three.mjs";

export class Model {
  lines = new Map(); // by id: also those whose branch is gone
  branches = new Map(); // name -> line
  origin = new Map(); // token -> token of the row that it replaced
  keptId = new Set(); // tokens of rows that took over the stable row id of the one that they replaced

  constructor(rows, columns, number, maps = new Map()) {
    const line = { id: "main", name: "main", first: 0, states: new Map() };
    this.lines.set("main", line);
    this.branches.set("main", line);
    const removed = new Map();
    this.first = this.#put(line, number, { prev: null, wrote: [], columns, rows, maps, carried: new Map(), picked: new Set(), op: "create", removed });
  }

  #put(line, number, state) {
    state.line = line;
    state.number = number;
    state.vector = join(descent(line, number), state.carried);
    line.states.set(number, state);
    line.tip = state;
    for (const row of state.rows.values()) if (row.from) this.origin.set(row.tok, row.from);
    return state;
  }
  tip = (name) => this.branches.get(name).tip;
  children = (line) => [...this.branches.values()].filter((b) => b.parent?.line === line);

  // A commit on a branch: its versions (tip, number] all show `rows`. `kind` says how rows that are gone went; `wrote`,
  // which columns it gave values.
  commit(name, number, kind, { rows, ...after } = {}) {
    const line = this.branches.get(name),
      first = line.tip,
      { columns, maps, carried, picked, index } = first;
    rows ??= first.rows;
    const state = { columns, maps, carried, picked, index, op: kind, wrote: [], ...after, rows };
    // An operation may take several versions; what it does happens in the first.
    for (let v = first.number + 1; v <= number; v++) {
      const s = this.#put(line, v, { ...state, prev: line.tip, removed: new Map() });
      if (v > first.number + 1) s.wrote = [];
      else s.removed = this.#removals(first, s, kind);
    }
    return line.tip;
  }
  #removals(before, state, how) {
    const into = new Map();
    for (const row of state.rows.values()) if (row.from && !before.rows.has(row.tok)) into.set(row.from, row.tok);
    const out = new Map();
    for (const tok of before.rows.keys())
      if (!state.rows.has(tok)) out.set(tok, { how, direct: true, cause: state, into: into.get(tok) });
    return out;
  }
  fork(name, from, id) {
    const { number, rows, columns, maps, carried, picked, index } = from,
      line = { id, name, first: number, parent: from, states: new Map() };
    this.lines.set(id, line);
    this.branches.set(name, line);
    // An index that a branch inherits is taken over by its children in a way that stock readers stumble over.
    return this.#put(line, number, {
      ...{ prev: from, columns, rows, maps, carried, picked, op: "fork", removed: new Map(), wrote: [] },
      index: index ? "inherited" : undefined,
    });
  }
  drop(name) {
    for (const s of this.branches.get(name).states.values()) s.cleaned = true;
    this.branches.delete(name);
  }
  // A version that lancefs wrote: what a prediction said.
  written(target, op, p, rows, number, marks) {
    const line = this.branches.get(target),
      ours = line.tip,
      removed = new Map();
    p.theirsState.kept = true; // a later merge may need it as its base, whatever stock cleans away
    for (const tok of ours.rows.keys()) {
      if (rows.has(tok)) continue;
      const by = p.theirs.removed.get(tok);
      const vanished = this.vanished(tok, p.theirsState);
      removed.set(tok, { how: by?.how ?? "replace", direct: false, vanished, cause: by?.cause, into: by?.into });
    }
    // An update that was taken back says nothing any more of the rows that it had replaced and that are gone all the same.
    for (const cause of p.settled?.causes ?? [])
      for (const tok of cause.removed.keys())
        if (!rows.has(tok) && !removed.has(tok)) removed.set(tok, { how: "delete", direct: false, vanished: true });
    const state = this.#put(line, number, {
      ...{ prev: ours, op, rows, removed, columns: p.columns, maps: p.maps, index: ours.index },
      ...{ carried: p.carried, picked: p.picked, wrote: p.schemaChanged ? [] : [...p.theirs.wrote, ...p.theirs.may] },
      moved: p.theirs.compacted || p.theirs.moved,
      replaced: p.theirs.replaced,
      undone: p.undone,
      brought: op === "merge" ? p.theirsState : undefined,
      ...marks,
    });
    if (p.back) for (const how of removed.values()) how.cause = state;
    return state;
  }

  // Does a live row of the state descend from this one, or this one from it (an update that was taken back)?
  vanished(tok, state) {
    for (let t of state.rows.keys()) for (; t; t = this.origin.get(t)) if (t === tok) return false;
    return !this.ancestorIn(tok, state);
  }
  // The row that this one came from by updates, if it lives in that state.
  ancestorIn(tok, state) {
    for (let t = this.origin.get(tok); t; t = this.origin.get(t)) if (state.rows.has(t)) return t;
    return undefined;
  }

  // One state for several bases: what merging them gives. Rows in conflict there are unknown.
  #virtual(found) {
    let [out, ...rest] = found;
    for (const next of rest) {
      const base = this.base(out, next),
        p = three(this, base, out, next, {}),
        unknown = new Set([...(out.unknown ?? []), ...(base.unknown ?? []), ...p.sure, ...p.maybe]);
      const clash = out.clash || base.clash || p.units.length > 0;
      out = { ...out, rows: p.rows, columns: p.columns, maps: p.maps, unknown, clash, vector: join(out.vector, next.vector) };
    }
    return out;
  }
  base(a, b) {
    const found = bases(this.lines, a.vector, b.vector);
    return { ...this.#virtual(found), count: found.length, of: found };
  }

  // --- what each verb must do ---

  // A merge of the state `theirs` into the state `ours`.
  merge(ours, theirs, policy = {}) {
    if (within(theirs.vector, ours.vector)) return { result: "up-to-date" };
    const base = this.base(ours, theirs),
      vector = join(ours.vector, theirs.vector);
    const lineage = { carried: vector, picked: uncovered([...ours.picked, ...theirs.picked], vector) };
    return three(this, base, ours, theirs, { policy, oursIsBase: within(ours.vector, base.vector), ...lineage });
  }
  // Versions first to last of a line, picked as one. Those at its ends that are held already are left out.
  pick(ours, line, first, last, policy = {}) {
    const held = (v) => (ours.vector.get(line.id) ?? 0) >= v || ours.picked.has(pickOf(line, v));
    while (first <= last && held(first)) first++;
    while (last >= first && held(last)) last--;
    if (first > last) return { result: "up-to-date" };
    const picked = new Set(ours.picked);
    for (let v = first; v <= last; v++) if (!held(v)) picked.add(pickOf(line, v));
    const before = line.states.get(first - 1);
    // What made the base, on its own line, is nothing that ours holds.
    const unheld = side(this, before, { vector: ours.vector, rows: new Map(), columns: new Map() });
    return three(this, { ...before, count: 1, of: [before] }, ours, line.states.get(last), {
      ...{ policy, carried: ours.vector, picked, unheld },
    });
  }
  #back(ours, from, to, more) {
    return three(this, { ...from, count: 1, of: [from] }, ours, to, { back: true, oursIsBase: from === ours, ...more });
  }
  // What version `number` of the branch changed, taken back.
  revert(ours, number, policy = {}) {
    const from = ours.line.states.get(number),
      to = ours.line.states.get(number - 1);
    // An undo or a restore that is taken back had forgotten merges: they are there again.
    const again = new Map([...to.vector].filter(([line, n]) => n > (from.vector.get(line) ?? 0)));
    return this.#back(ours, from, to, { policy, carried: join(ours.vector, again), picked: ours.picked });
  }
  // Content and lineage of before the last merges.
  undo(ours, steps = 1, policy = {}) {
    const merges = [],
      undone = new Set();
    let others = false,
      cleaned = false;
    for (let v = ours.number; v > Math.max(ours.line.first, 1) && merges.length < steps; v--) {
      const s = ours.line.states.get(v);
      cleaned ||= s.cleaned && !s.kept;
      if (s.op === "undo") for (const u of s.undone) undone.add(u);
      else if (s.op === "merge" && !undone.has(v)) merges.push(s);
      else if (s.op !== "merge" && merges.length) others = true;
    }
    if (merges.length < steps) return { result: "error", errno: "ENOENT", cleaned };
    if (others) return { result: "error", errno: "EOPNOTSUPP", cleaned };
    const from = merges[0],
      to = ours.line.states.get(merges.at(-1).number - 1);
    const samePicks = [...from.picked].sort().join() === [...ours.picked].sort().join();
    return this.#back(ours, from, to, {
      ...{ policy, carried: to.vector, picked: samePicks ? to.picked : ours.picked, undone: merges.map((s) => s.number), cleaned },
    });
  }
}

// The rows of a state as a reader shows them: objects by column name.
export const shown = (rows, columns) =>
  [...rows.values()].map((r) => Object.fromEntries([...columns].map(([id, name]) => [name, r.values[id] ?? null])));
