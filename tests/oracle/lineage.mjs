// SPDX-License-Identifier: Apache-2.0
// Version vectors (merge-semantics section 1): Map of line -> highest version held.

const raise = (vector, line, version) => {
  if (version > (vector.get(line) ?? 0)) vector.set(line, version);
};
export const join = (...vectors) => {
  const out = new Map();
  for (const v of vectors) for (const [line, n] of v) raise(out, line, n);
  return out;
};
export const meet = (a, b) =>
  new Map([...a].filter(([line]) => b.has(line)).map(([line, n]) => [line, Math.min(n, b.get(line))]));
export const within = (a, b) => [...a].every(([line, n]) => n <= (b.get(line) ?? 0));

// The vector of version `number` of a line without what merges brought: its own commits, its parents' up to the fork.
export function descent(line, number) {
  const out = line.parent ? descent(line.parent.line, line.parent.number) : new Map();
  if (!line.parent || number > line.first) raise(out, line.id, number);
  return out;
}

// Picks by themselves, which no vector covers: a Set of "line:version".
export const pickOf = (line, number) => `${line.id}:${number}`;
export const uncovered = (picks, vector) =>
  new Set([...picks].filter((p) => Number(p.slice(p.lastIndexOf(":") + 1)) > (vector.get(p.slice(0, p.lastIndexOf(":"))) ?? 0)));

// Did an undo on the line, after version `from`, take merges back?
const undoneAfter = (line, from, to) =>
  [...line.states.values()].some((s) => s.op === "undo" && s.number > from && s.number <= to);

// The states that two vectors have in common and no other such state holds. Versions that held merges which an undo took
// back are no common ground any more: those are to be made again. (A restore is a change like any other.)
export function bases(lines, a, b) {
  const common = meet(a, b),
    found = [];
  for (const [id, n] of common) {
    const line = lines.get(id);
    let x = line.states.get(n);
    if (undoneAfter(line, n, Math.max(a.get(id), b.get(id))))
      while (x.number > 1 && !within(x.vector, common)) x = line.states.get(x.number - 1);
    found.push(x);
  }
  // Of two that hold each other (one state under two names) one is enough.
  const holds = (x, y) => y.number <= (x.vector.get(y.line.id) ?? 0);
  return found.filter((x, i) => !found.some((y, j) => j !== i && holds(y, x) && (!holds(x, y) || j < i)));
}
