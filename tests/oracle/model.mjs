// SPDX-License-Identifier: Apache-2.0
// What a data set must hold: plain rows, one object for each physical copy of a row, told apart by its token. Each
// version of each line is kept whole and for ever, together with what its commit took away and how. Compactions, indexes,
// clean-up and files do not exist here, but for the marks that say where a program may honestly know less.
//
// A row: { tok, from, values }; `from` is the token of the copy that an update replaced, `values` goes by column.
// Columns have an id of their own, which a rename keeps.

const raise = (vector, line, version) => {
  if (version > (vector.get(line) ?? 0)) vector.set(line, version);
};
export const join = (...vectors) => {
  const out = new Map();
  for (const v of vectors) for (const [line, n] of v) raise(out, line, n);
  return out;
};
export const within = (a, b) => [...a].every(([line, n]) => n <= (b.get(line) ?? 0));

// The version vector of version `number` of a line without what merges brought: its own commits, its parents' up to the fork.
function descent(line, number) {
  const out = line.parent ? descent(line.parent.line, line.parent.number) : new Map();
  if (!line.parent || number > line.first) raise(out, line.id, number);
  return out;
}

export class Model {
  lines = new Map(); // by id: also those whose branch is gone
  branches = new Map(); // name -> line
  origin = new Map(); // token -> token of the row that it replaced

  constructor(rows, columns, number) {
    const line = { id: "main", name: "main", first: 0, states: new Map() };
    this.lines.set("main", line);
    this.branches.set("main", line);
    this.#put(line, number, { prev: null, columns, rows, carried: new Map(), op: "create", removed: new Map() });
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

  // A commit on a branch: its versions (tip, number] all show `rows`. `kind` says how rows that are gone went.
  commit(name, number, kind, { rows, columns, carried, ...marks } = {}) {
    const line = this.branches.get(name),
      prev = line.tip;
    rows ??= prev.rows;
    const removed = new Map();
    for (const tok of prev.rows.keys()) if (!rows.has(tok)) removed.set(tok, { how: kind, direct: true });
    const state = {
      ...{ op: kind, removed, rows, columns: columns ?? prev.columns, carried: carried ?? prev.carried, index: prev.index },
      ...marks,
    };
    // An operation may take several versions; what it does happens in the first.
    for (let v = prev.number + 1; v <= number; v++)
      this.#put(line, v, { ...state, prev: line.tip, removed: v === prev.number + 1 ? removed : new Map() });
    return line.tip;
  }
  fork(name, from, id) {
    const { number, rows, columns, carried, index } = from,
      line = { id, name, first: number, parent: from, states: new Map() };
    this.lines.set(id, line);
    this.branches.set(name, line);
    // An index that a branch inherits is taken over by its children in a way that stock readers stumble over.
    return this.#put(line, number, {
      ...{ prev: from, columns, rows, carried, op: "fork", removed: new Map() },
      index: index ? "inherited" : undefined,
    });
  }
  drop(name) {
    this.branches.delete(name);
  }
  // A merge that was committed: what predict() said, at this version.
  merged(target, source, prediction, rows, number, marks) {
    const line = this.branches.get(target),
      ours = line.tip,
      removed = new Map();
    source.kept = true; // a later merge may need it as its base, whatever stock cleans away
    for (const tok of ours.rows.keys())
      if (!rows.has(tok)) {
        const by = prediction.theirs.removed.get(tok);
        removed.set(tok, { how: by?.how ?? "replace", direct: false, vanished: this.#vanished(tok, source) });
      }
    return this.#put(line, number, {
      ...{ prev: ours, op: "merge", rows, removed, columns: prediction.columns, index: ours.index },
      carried: join(ours.vector, source.vector),
      moved: prediction.theirs.compacted || prediction.theirs.moved,
      replaced: prediction.theirs.replaced,
      ...marks,
    });
  }

  // Does no live row of the state descend from this one?
  #vanished(tok, state) {
    for (let t of state.rows.keys()) for (; t; t = this.origin.get(t)) if (t === tok) return false;
    return true;
  }

  // The maximal elements of the meet of two vectors, as states.
  bases(a, b) {
    const meet = [];
    for (const [line, n] of a)
      if (b.has(line)) meet.push(this.lines.get(line).states.get(Math.min(n, b.get(line))));
    const holds = (x, y) => x !== y && y.number <= (x.vector.get(y.line.id) ?? 0);
    return meet.filter((x) => !meet.some((y) => holds(y, x)));
  }

  // One state for several bases: what merging them gives. Rows in conflict there are unknown.
  #virtual(bases) {
    const [first, ...rest] = bases;
    let out = { ...first, unknown: new Set(first.unknown) };
    for (const next of rest) {
      const base = this.base(out, next),
        rows = new Map(),
        unknown = new Set([...out.unknown, ...base.unknown]);
      for (const tok of new Set([...out.rows.keys(), ...next.rows.keys()])) {
        const gone = base.rows.has(tok) && !(out.rows.has(tok) && next.rows.has(tok));
        if (!gone) rows.set(tok, out.rows.get(tok) ?? next.rows.get(tok));
      }
      const left = this.#side(out, base),
        right = this.#side(next, base);
      for (const tok of base.rows.keys())
        if (!out.rows.has(tok) && !next.rows.has(tok) && pair(left.removed.get(tok), right.removed.get(tok)) !== "clean")
          unknown.add(tok);
      out = { ...out, rows, unknown, vector: join(out.vector, next.vector), columns: out.columns };
    }
    return out;
  }
  base(a, b) {
    const found = this.bases(a.vector, b.vector);
    return { ...this.#virtual(found), count: found.length, of: found };
  }

  // What one side did since the base: how each row of the base went that it lacks, and what may hide that.
  #side(tip, base) {
    const out = { removed: new Map(), ever: new Set() };
    const path = [];
    for (let s = tip; s && s.number > (base.vector.get(s.line.id) ?? 0); s = s.prev)
      if (s.op !== "fork") path.push(s);
    for (const s of path) {
      for (const tok of s.rows.keys()) out.ever.add(tok);
      for (const [tok, how] of s.removed)
        if (base.rows.has(tok) && !tip.rows.has(tok) && !out.removed.has(tok)) out.removed.set(tok, { ...how, at: s });
      if (s.op === "compact") out.compacted = true;
      if (s.moved) out.moved = true;
      if (s.op === "replace" || s.replaced) out.replaced = true;
      if (s.cleaned || s.prev?.cleaned) out.cleaned = true;
    }
    const compactedBefore = (state) =>
      path.some((s) => (s.op === "compact" || s.moved) && path.indexOf(s) > path.indexOf(state));
    for (const tok of base.rows.keys()) {
      if (tip.rows.has(tok)) continue;
      const how = out.removed.get(tok) ?? { how: "replace", direct: false };
      how.seen = seenAs(how, {
        cleaned: out.cleaned,
        compacted: how.at && compactedBefore(how.at),
        vanished: how.vanished ?? this.#vanished(tok, tip),
      });
      out.removed.set(tok, how);
    }
    return out;
  }

  // What a merge of the state `theirs` into the state `ours` must do. `result` is up-to-date, clean or conflict; rows in
  // `sure` are in conflict, those in `maybe` can count as such since the log of operations does not tell enough, those in
  // `open` may be there or not.
  predict(ours, theirs) {
    if (within(theirs.vector, ours.vector)) return { result: "up-to-date" };
    const base = this.base(ours, theirs);
    const out = { base, ours: this.#side(ours, base), theirs: this.#side(theirs, base), rows: new Map() };
    Object.assign(out, { sure: [], maybe: [], open: new Set(), units: [], oursIsBase: within(ours.vector, base.vector) });
    mergeColumns(base, ours, theirs, out);
    for (const tok of new Set([...base.rows.keys(), ...ours.rows.keys(), ...theirs.rows.keys()])) {
      const b = base.rows.has(tok),
        o = ours.rows.get(tok),
        t = theirs.rows.get(tok);
      if (base.unknown.has(tok) && !o !== !t) out.sure.push(tok);
      else if (b && !o && !t) {
        const verdict = pair(out.ours.removed.get(tok), out.theirs.removed.get(tok));
        if (verdict === "conflict") out.sure.push(tok);
        if (verdict === "either") out.maybe.push(tok);
      } else if (!b || (o && t)) {
        // The same files on both sides count as one fragment that began whole, so presence can depend on files here.
        if (!b && !o !== !t && (o ? out.theirs : out.ours).ever.has(tok)) out.open.add(tok);
        out.rows.set(tok, united(o, t, out.columns));
      }
    }
    const lost = (side) => [...side.removed.values()].some((r) => r.how === "replace" && r.direct);
    const changed = (state) => state.rows.size !== base.rows.size || [...state.rows.keys()].some((t) => !base.rows.has(t));
    out.replaced = (lost(out.ours) && changed(theirs)) || (lost(out.theirs) && changed(ours));
    out.result = out.sure.length || out.units.length || out.replaced ? "conflict" : "clean";
    return out;
  }
}

// What the log of operations may say of a row that went away. A merge's own commit says one thing of all its rows; after
// a compaction or a clean-up the safe reading is "updated"; a row whose replacement is gone too can look deleted.
function seenAs({ how, direct }, { cleaned, compacted, vanished }) {
  if (how === "replace") return new Set(["update", "delete"]);
  if (how === "delete") return new Set(direct && !cleaned && !compacted ? ["delete"] : ["delete", "update"]);
  return new Set(vanished && (!direct || cleaned) ? ["delete", "update"] : ["update"]);
}
// Both sides lack a row of the base.
function pair(a, b) {
  if (!a.seen.has("delete") || !b.seen.has("delete")) return "conflict";
  return a.seen.has("update") || b.seen.has("update") ? "either" : "clean";
}

// A row's values never change under its token, but each side may have columns of its own.
function united(o, t, columns) {
  if (!o || !t || o === t) return o ?? t;
  const values = {};
  for (const id of columns.keys()) values[id] = o.values[id] ?? t.values[id];
  return { ...o, values };
}

// Columns by id: present or not, and the name.
function mergeColumns(base, ours, theirs, out) {
  out.columns = new Map();
  for (const id of new Set([...ours.columns.keys(), ...theirs.columns.keys(), ...base.columns.keys()])) {
    const [b, o, t] = [base, ours, theirs].map((s) => s.columns.get(id));
    if (o !== t && b !== o && b !== t) out.units.push(`column ${id}`);
    const name = b === o ? t : o;
    if (name !== undefined) out.columns.set(id, name);
  }
  const names = [...out.columns.values()];
  if (new Set(names).size < names.length) out.units.push("two columns of one name");
  out.schemaChanged = [ours, theirs].some((s) => s.columns !== base.columns);
}

// The rows of a state as a reader shows them: objects by column name.
export const shown = (rows, columns) =>
  [...rows.values()].map((r) => Object.fromEntries([...columns].map(([id, name]) => [name, r.values[id] ?? null])));
