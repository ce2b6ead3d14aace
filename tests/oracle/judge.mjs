// SPDX-License-Identifier: Apache-2.0
// Is an answer of lancefs right, given what the model says? Gives a name for the table of outcomes, or throws.
// Refusals are right only where the history has what the reason speaks of.
import assert from "node:assert/strict";

// What a refusal may say, and when.
const any = (key) => (p) => p.ours[key] || p.theirs[key];
const REFUSALS = [
  { name: "crosswise", says: /merged crosswise/, fits: (p) => p.base.count > 1 },
  { name: "compacted", says: /compaction .* (rewrote|cannot be followed)/, fits: (p) => any("compacted")(p) || any("moved")(p) },
  { name: "replaced", says: /overwritten or restored/, fits: any("replaced") },
  { name: "rows brought back", says: /brought back rows/, fits: any("replaced") },
  { name: "history cleaned away", says: /versions of .* were cleaned away/, fits: any("cleaned") },
  // A merge that left a compaction out: the base has the compacted rows, this side never had them.
  { name: "compaction left out before", says: /versions of .* were cleaned away/, fits: any("moved") },
  {
    name: "schema",
    says: /other columns and compacted|no data in common|changed its type|column files|added columns|different columns|rewrote a column|may not be null/,
    fits: (p) => p.schemaChanged,
  },
];

const WROTE = ["merged", "fast-forward", "empty-merge"];
const quoted = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text.trim()}`;
const sameRows = (a, b) => a.size === b.size && [...a.keys()].every((t) => b.has(t));

// r: what ctl() gave. p: the model's prediction. Gives { outcome, wrote }; `wrote` says that there is a new version.
export function judge(r, p, { ours, options, addresses }) {
  const is = (name, wrote = false) => ({ outcome: name, wrote });
  const { result } = r.answer,
    fail = (why) => assert.fail(`${why}: ${quoted(r)}`);

  if (p.result === "up-to-date") {
    if (r.code !== 0 || result !== "up-to-date") fail("up-to-date was expected");
    return is("up-to-date");
  }
  if (r.code !== 0 && r.errno === "EOPNOTSUPP") {
    const reasons = REFUSALS.filter((x) => x.says.test(r.answer.reason ?? r.answer.error ?? ""));
    if (!reasons.length) fail("a refusal for no known reason");
    const reason = reasons.find((x) => x.fits(p));
    if (!reason) fail(`refused as "${reasons[0].name}" where the history has no such thing`);
    assert.equal(result, "refused", quoted(r));
    return is(`refused: ${reason.name}`);
  }
  // Stock clean-up took the base, and no merge had kept it.
  if (r.errno === "ENODATA" && p.base.of.some((b) => b.cleaned && !b.kept)) return is("refused: base cleaned away");
  if (options.includes("ff=only") && !p.oursIsBase) {
    if (r.errno !== "ECANCELED") fail("ff=only on a target that moved must stop");
    return is("not a fast-forward");
  }
  if (r.errno === "ECANCELED") return is(conflict(r, p, addresses, fail));
  if (r.code !== 0) fail("an error where the model expects none");

  // Done. Must it have stopped?
  if (p.replaced) fail("merged where one side replaced the table and the other changed it");
  if (p.result === "conflict") fail(`merged where the model sees conflicts in ${[...p.sure, ...p.units].join(" ")}`);
  const nothing = sameRows(p.rows, ours.rows);
  if (result === "dry-run") return options.includes("dry-run") ? is("dry-run") : fail("a dry run that nobody asked for");
  if (result === "up-to-date") {
    if (!p.oursIsBase || !(nothing || p.open.size)) fail("up-to-date where there is something to merge");
    return is("up-to-date");
  }
  if (!WROTE.includes(result)) fail("no such result is known");
  if (options.includes("dry-run")) fail("a dry run that wrote");
  if (result === "empty-merge" && !nothing && !p.open.size) fail("empty-merge where rows change");
  if (result === "fast-forward" && (!p.oursIsBase || options.includes("ff=never"))) fail("no fast-forward was due");
  return is(result, true);
}

function conflict(r, p, addresses, fail) {
  const count = Number(r.answer.conflicts),
    said = [...r.answer.text.matchAll(/unit: row (\d+) of fragment \d+/g)].map((x) => Number(x[1]));
  if (!(count > 0)) fail("a conflict without an entry");
  const possible = [...p.sure, ...p.maybe];
  // Copies that a merge brought along with a compaction: whether the other side's rows are the same is not told.
  const hidden = p.ours.moved || p.theirs.moved;
  if (!p.sure.length && !p.units.length) {
    if (p.replaced) return "conflict (replaced)";
    if (!possible.length && !hidden) fail("a conflict where the model sees none");
    return possible.length ? "cautious conflict (merged before, compacted or cleaned)" : "cautious conflict (compaction merged before)";
  }
  if (hidden || p.units.length || p.base.count > 1) return "conflict";
  if (count < p.sure.length || count > possible.length)
    fail(`${count} conflicts where the model sees ${p.sure.join(" ")} (and perhaps ${p.maybe.join(" ")})`);
  // Fragments get other ids when they are merged, but a row keeps its place in its fragment.
  const known = new Set(possible.flatMap((tok) => [...(addresses.get(tok) ?? [])].map((at) => at % 2 ** 32)));
  for (const row of said) if (!known.has(row)) fail(`row ${row} is in no conflict that the model sees`);
  return "conflict";
}
