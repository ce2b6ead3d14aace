// SPDX-License-Identifier: Apache-2.0
// Three states in, what the fourth must be out (merge-semantics sections 3 and 4).
import { within } from "./lineage.mjs";
import { settle } from "./strategy.mjs";
import { mergeColumns, mergeMaps } from "./units.mjs";

// What one side did since the base: how each row of the base went that it lacks, and what may hide that.
export function side(model, tip, base) {
  const out = { removed: new Map(), ever: new Set(), wrote: new Set(), may: new Set() };
  const path = [],
    held = new Set(),
    undone = new Set();
  let s = tip;
  for (; s && s.number > (base.vector.get(s.line.id) ?? 0); s = s.prev) if (s.op !== "fork") path.push(s);
  for (const tok of s?.rows.keys() ?? []) held.add(tok);
  for (const s of path) {
    for (const tok of s.rows.keys()) {
      held.add(tok);
      if (!undone.has(tok)) out.ever.add(tok);
    }
    for (const tok of broughtTo(s, base)) if (!undone.has(tok)) out.ever.add(tok);
    if (s.op === "undo") for (const tok of s.prev.rows.keys()) if (!s.rows.has(tok)) undone.add(tok);
    for (const [tok, how] of s.removed)
      if (base.rows.has(tok) && !tip.rows.has(tok) && !out.removed.has(tok)) out.removed.set(tok, { ...how, at: s });
    for (const c of s.wrote) (["merge", "pick", "revert", "undo"].includes(s.op) ? out.may : out.wrote).add(c);
    if (s.op === "compact") out.compacted = true;
    if (s.moved) out.moved = true;
    if (s.op === "replace" || s.replaced) out.replaced = true;
    if (s.cleaned || s.prev?.cleaned) out.cleaned = true;
  }
  out.returned = [...tip.rows.keys()].some((tok) => !base.rows.has(tok) && stoodBefore(base, tok));
  if (out.cleaned || out.replaced) for (const c of base.columns.keys()) out.may.add(c);
  const compactedBefore = (state) =>
    path.some((s) => (s.op === "compact" || s.moved) && path.indexOf(s) > path.indexOf(state));
  for (const tok of base.rows.keys()) {
    if (tip.rows.has(tok)) continue;
    const never = !held.has(tok) && !within(base.vector, tip.vector); // the base of a pick is a state of another branch
    const how = out.removed.get(tok) ?? { how: never ? "delete" : "replace", direct: never, never };
    how.into ??= childIn(model, tok, tip);
    // Of several bases one may hold the row that another line of this side had updated already: that commit tells.
    const maker = !out.removed.has(tok) && !never && base.count > 1 ? makerOf(model, tok, how.into) : undefined;
    if (maker) Object.assign(how, { how: "update", cause: maker });
    if (how.cause?.cleaned) out.cleaned = true;
    how.seen = seenAs(how, {
      cleaned: out.cleaned,
      compacted: never ? out.compacted || out.moved : how.at && compactedBefore(how.at),
      vanished: how.vanished ?? model.vanished(tok, tip),
    });
    out.removed.set(tok, how);
  }
  return out;
}

// Rows that a merge's source held on its way to it: their fragments may have come along.
function* broughtTo(state, base) {
  const known = (line) => Math.max(base.vector.get(line.id) ?? 0, state.prev?.vector.get(line.id) ?? 0);
  for (let s = state.brought; s && s.number > known(s.line); s = s.prev) {
    yield* s.rows.keys();
    yield* broughtTo(s, base);
  }
}

// The copy that took the row's place, if one that descends from it lives there: a merge may have brought both.
function childIn(model, tok, state) {
  for (let t of state.rows.keys()) for (; t; t = model.origin.get(t)) if (model.origin.get(t) === tok) return t;
  return undefined;
}

// The commit that put this copy in that row's place.
function makerOf(model, tok, into) {
  for (const line of model.lines.values())
    for (const s of line.states.values()) if (into && s.removed.get(tok)?.direct && s.removed.get(tok).into === into) return s;
  return undefined;
}

// Was the row there on the way to that state, and is there no more?
function stoodBefore(state, tok) {
  for (let s = state.prev; s; s = s.prev) if (s.rows.has(tok)) return true;
  return false;
}

// What going back from the base to an older version of the same line takes away: rows that were appended are deleted, a
// row that an update made becomes the one it was.
function sideBack(model, to, base) {
  const out = { removed: new Map(), ever: new Set(to.rows.keys()), wrote: new Set(), may: new Set(base.columns.keys()) };
  const range = [];
  for (let s = to.line.tip; s && s !== to; s = s.prev) if (s.number <= base.number) range.push(s);
  for (const s of range) {
    if (s.op === "compact") out.compacted = true;
    if (s.moved) out.moved = true;
    if (s.op === "replace" || s.replaced) out.replaced = true;
    if (s.cleaned || s.prev?.cleaned) out.cleaned = true;
  }
  for (const tok of base.rows.keys()) {
    if (to.rows.has(tok)) continue;
    const made = range.find((s) => s.rows.has(tok) && !s.prev.rows.has(tok)),
      plain = made?.op === "append" && !out.cleaned && !out.compacted && !out.moved,
      into = model.ancestorIn(tok, to),
      how = into ? "update" : "delete";
    const seen = new Set(how === "update" ? ["update"] : plain ? ["delete"] : ["delete", "update"]);
    out.removed.set(tok, { how, into, direct: false, seen, vanished: how === "delete" });
  }
  return out;
}

// What the log of operations may say of a row that went away. A merge's own commit says one thing of all its rows; after
// a compaction or a clean-up the safe reading is "updated"; a row whose replacement is gone too can look deleted.
function seenAs({ how, direct }, { cleaned, compacted, vanished }) {
  if (how === "replace") return new Set(["update", "delete"]);
  if (how === "delete") return new Set(direct && !cleaned && !compacted ? ["delete"] : ["delete", "update"]);
  return new Set(vanished && (!direct || cleaned) ? ["delete", "update"] : ["update"]);
}
// Both sides lack a row of the base. One update that both hold (a pick brought it) is one change.
function pair(a, b, hidden) {
  if (a.into && a.into === b.into) return hidden || !a.direct || !b.direct ? "either" : "clean";
  if (!a.seen.has("delete") || !b.seen.has("delete")) return "conflict";
  return a.seen.has("update") || b.seen.has("update") ? "either" : "clean";
}

// A row's values never change under its token, but each side may have columns of its own.
function united(o, t, columns) {
  const values = {};
  for (const id of columns.keys()) values[id] = o?.values[id] ?? t?.values[id];
  return { ...(o ?? t), values };
}

// What must come of it. `result` is clean or conflict; rows in `sure` are in conflict, those in `maybe` can count as such
// since the log of operations does not tell enough, those in `open` may be there or not.
export function three(model, base, ours, theirs, { policy = {}, back, oursIsBase = false, ...more }) {
  const sides = { ours: side(model, ours, base), theirs: (back ? sideBack : side)(model, theirs, base) };
  const out = { ...more, base, back, oursState: ours, theirsState: theirs, ...sides, rows: new Map(), policy, oursIsBase };
  Object.assign(out, { sure: [], maybe: [], open: new Set(), bare: new Set() });
  const schema = mergeColumns(base, ours, theirs, sides, policy.schema),
    maps = mergeMaps(base.maps, ours.maps, theirs.maps, policy.config);
  Object.assign(out, { columns: schema.columns, maps: maps.maps, schemaChanged: schema.changed });
  // A column that came by a merge has an id of its own on each line.
  out.renumbered = [base, ours, theirs].some((s) => [...s.columns.keys()].some((id) => !model.first.columns.has(id)));
  out.units = [...schema.clashes, ...maps.clashes];
  out.perhaps = schema.perhaps;
  mergeRows(model, out);
  if (policy.rows && policy.rows !== "fail") out.settled = settle(model, out, three, more);
  out.result = out.sure.length || out.units.length ? "conflict" : "clean";
  return out;
}

function mergeRows(model, out) {
  const { base, oursState: ours, theirsState: theirs } = out;
  const hidden = ["cleaned", "compacted", "moved"].some((k) => out.ours[k] || out.theirs[k]);
  for (const tok of new Set([...base.rows.keys(), ...ours.rows.keys(), ...theirs.rows.keys()])) {
    const b = base.rows.has(tok),
      o = ours.rows.get(tok),
      t = theirs.rows.get(tok);
    if (base.unknown?.has(tok) && !o !== !t) out.sure.push(tok);
    else if (b && !o && !t) {
      const [mine, others] = [out.ours.removed.get(tok), out.theirs.removed.get(tok)];
      // The row that one side put in its place stands on both sides: an update taken back that the other one never had.
      const agreed = [mine.into, others.into].some((x) => ours.rows.has(x) && theirs.rows.has(x));
      const verdict = agreed ? "either" : pair(mine, others, hidden);
      if (verdict === "conflict") out.sure.push(tok);
      if (verdict === "either") out.maybe.push(tok);
    } else if (b && !o !== !t) {
      // The copy that an update made has no place for what the other side put into a new column.
      const [lacks, without, has, row] = o ? [out.theirs, theirs, ours, o] : [out.ours, ours, theirs, t],
        { seen } = lacks.removed.get(tok),
        fresh = [...has.columns.keys()].filter((id) => !base.columns.has(id) && !without.columns.has(id));
      if (!seen.has("update") || !fresh.some((id) => (row.values[id] ?? null) !== null)) continue;
      out.bare.add(tok);
      (seen.has("delete") || hidden ? out.maybe : out.sure).push(tok);
    } else if (!b || (o && t)) {
      // The same files on both sides count as one fragment that began whole, so presence can depend on files here.
      if (!b && !o !== !t && (o ? out.theirs : out.ours).ever.has(tok)) {
        out.open.add(tok);
      }
      out.rows.set(tok, united(o, t, out.columns));
    }
  }
  // Both copies of one row are never the result.
  for (const tok of out.open)
    if (replacedIn(model, tok, out.rows)) {
      out.open.delete(tok);
      out.rows.delete(tok);
      out.maybe.push(tok);
    }
  // What a pick brought to both and both did away with since counts as common ground.
  for (const tok of out.ours.ever)
    if (out.theirs.ever.has(tok) && ![base, ours, theirs].some((s) => s.rows.has(tok))) out.maybe.push(tok);
}
// Is a later copy of the row there?
function replacedIn(model, tok, rows) {
  for (const live of rows.keys())
    for (let t = model.origin.get(live); t; t = model.origin.get(t)) if (t === tok) return true;
  return false;
}
