// SPDX-License-Identifier: Apache-2.0
// Units that are no rows: columns, and keys of the three maps of a table (merge-semantics section 3).

// The table of section 3. { value, clash }; a strategy decides what both sides changed.
export function decide(base, ours, theirs, strategy) {
  if (ours === theirs || theirs === base) return { value: ours };
  if (ours === base) return { value: theirs };
  return { value: strategy === "source-wins" ? theirs : ours, clash: !strategy || strategy === "fail" };
}

// Keys go by "config key a", as conflicts name them.
export function mergeMaps(base, ours, theirs, strategy) {
  const out = { maps: new Map(), clashes: [] };
  for (const key of new Set([...base.keys(), ...ours.keys(), ...theirs.keys()])) {
    const { value, clash } = decide(base.get(key), ours.get(key), theirs.get(key), strategy);
    if (clash) out.clashes.push(key);
    if (value !== undefined) out.maps.set(key, value);
  }
  return out;
}

// Columns by id: there or not, and the name. `wrote`: which columns a side's updates wrote since the base; one that the
// other side dropped meanwhile has two values. `may` as `wrote`, where that cannot be told for certain.
export function mergeColumns(base, ours, theirs, sides, strategy) {
  const out = { columns: new Map(), clashes: [], perhaps: [] };
  for (const id of new Set([...ours.columns.keys(), ...theirs.columns.keys(), ...base.columns.keys()])) {
    const [b, o, t] = [base, ours, theirs].map((s) => s.columns.get(id));
    const { value, clash } = decide(b, o, t, strategy);
    if (clash) out.clashes.push(`column ${id}`);
    if (value !== undefined) out.columns.set(id, value);
    if (b === undefined || (o === undefined) === (t === undefined)) continue;
    const writer = o === undefined ? sides.theirs : sides.ours,
      dropperWins = strategy === (o === undefined ? "dest-wins" : "source-wins");
    if (!dropperWins && writer.wrote.has(id)) out.clashes.push(`column ${id}`);
    else if (!dropperWins && writer.may.has(id)) out.perhaps.push(`column ${id}`);
  }
  settleNames(out.columns, base, ours, theirs, strategy);
  const names = [...out.columns.values()];
  if (new Set(names).size < names.length) out.clashes.push("two columns of one name");
  out.changed = [ours, theirs].some((s) => !sameColumns(s.columns, base.columns));
  return out;
}
// A new column of theirs under a name that is taken: a strategy keeps one of them, where ours' is new as well.
function settleNames(columns, base, ours, theirs, strategy) {
  const added = (state, other) => [...state.columns.keys()].filter((id) => !base.columns.has(id) && !other.columns.has(id));
  const fresh = added(ours, theirs);
  for (const id of added(theirs, ours))
    for (const [other, name] of columns) {
      if (other === id || name !== columns.get(id)) continue;
      if (strategy === "dest-wins") columns.delete(id);
      if (strategy === "source-wins" && fresh.includes(other)) columns.delete(other);
    }
}
export const sameColumns = (a, b) => a.size === b.size && [...a].every(([id, name]) => b.get(id) === name);
export const sameMaps = (a, b) => a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);

const sameRows = (a, b) => a.size === b.size && [...a.keys()].every((t) => b.has(t));
// Would a merge with this prediction leave the state as it is, as far as the model can tell?
export function changesNothing(p, ours) {
  const settled = p.settled && !p.settled.stuck ? p.settled : p;
  return settled.open.size > 0 || (sameRows(settled.rows, ours.rows) && sameColumns(p.columns, ours.columns) && sameMaps(p.maps, ours.maps));
}
