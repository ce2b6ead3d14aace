// SPDX-License-Identifier: Apache-2.0
// Is an answer of lancefs right, given what the model says? Gives a name for the table of outcomes, or throws.
// Refusals are right only where the history has what the reason speaks of.
import assert from "node:assert/strict";
import { changesNothing } from "./units.mjs";

// What a refusal may say, and when.
const any = (key) => (p) => p.ours[key] || p.theirs[key] || p.unheld?.[key];
const compacted = (p) => any("compacted")(p) || any("moved")(p);
// Were versions cleaned away, with their branch perhaps, that the base came from? Merges brought what they had made.
const forgotten = ({ model, base }) =>
  [...base.vector].some(([id, n]) => [...model.lines.get(id).states.values()].some((s) => s.number <= n && s.cleaned));
const REFUSALS = [
  { name: "crosswise", says: /merged crosswise/, fits: (p) => p.base.count > 1 },
  { name: "compacted", says: /compaction .* (rewrote|cannot be followed)|rows that a compaction moved/, fits: compacted },
  { name: "replaced", says: /overwritten or restored/, fits: any("replaced") },
  { name: "rows brought back", says: /brought back rows/, fits: (p) => any("replaced")(p) || p.back || p.theirs.returned },
  { name: "history cleaned away", says: /versions of .* were cleaned away/, fits: any("cleaned") },
  { name: "history cleaned away", says: /since the base were cleaned away/, fits: (p) => p.anyCleaned },
  // A merge that left a compaction out: the base has the compacted rows, this side never had them.
  { name: "compaction left out before", says: /versions of .* were cleaned away/, fits: any("moved") },
  // A pick of rows that the target has lost, or holds in other fragments.
  { name: "had before", says: /has had in another place, or gave up/, fits: (p) => [p.base, p.theirsState].some((s) => [...s.rows.keys()].some((t) => !p.oursState.rows.has(t))) || compacted(p) },
  { name: "stable row ids", says: /stable (row )?ids?/, fits: (p) => p.stable },
  {
    name: "compaction left out before",
    says: /rows that a compaction moved, which .* does not have/,
    fits: (p) => any("moved")(p) || any("compacted")(p),
  },
  {
    name: "history cleaned away",
    says: /made by a commit that was cleaned away/,
    fits: (p) => any("cleaned")(p) || any("moved")(p) || any("compacted")(p) || forgotten(p), // a clean-up compacts too
  },
  {
    name: "schema",
    says: /other columns and compacted|no data in common|changed its type|column files|added columns|different columns|rewrote a column|may not be null/,
    fits: (p) => p.schemaChanged || p.renumbered,
  },
];

const WROTE = ["merged", "fast-forward", "empty-merge"];
const quoted = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text.replace(/^#.*\n/gm, "").trim()}`;

// r: what ctl() gave. p: the model's prediction. Gives { outcome, wrote }; `wrote` says that there is a new version.
export function judge(r, p, { verb, ours, options, addresses }) {
  const is = (name, wrote = false) => ({ outcome: name, wrote });
  const { result } = r.answer,
    fail = (why) => assert.fail(`${verb}, ${why}: ${quoted(r)}`);
  // ff= is asked for before anything else is looked at.
  const notForward = options.includes("ff=only") && !p.oursIsBase;

  if (p.result === "up-to-date") {
    if (r.code !== 0 || result !== "up-to-date") fail("up-to-date was expected");
    return is("up-to-date");
  }
  if (p.result === "error") {
    if (r.errno === "ENODATA" && p.cleaned) return is("refused: history cleaned away");
    if (r.errno !== p.errno) fail(`${p.errno} was expected`);
    return is(p.errno === "ENOENT" ? "nothing to undo" : "refused: commits between");
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
  const lost = [...p.base.of, p.theirsState].some((s) => s.cleaned && !s.kept);
  if (r.errno === "ENODATA" && (lost || p.cleaned)) return is("refused: base cleaned away");
  if (notForward) {
    if (r.errno !== "ECANCELED") fail("ff=only on a target that moved must stop");
    return is("not a fast-forward");
  }
  if (r.errno === "ECANCELED") return is(conflict(r, p, addresses, fail));
  if (r.code !== 0) fail("an error where the model expects none");
  return done(r, p, { ours, options, fail, is });
}

// It went through. Must it have stopped?
function done(r, p, { ours, options, fail, is }) {
  const { result } = r.answer,
    sure = p.settled && !p.settled.stuck ? [] : p.sure;
  if (/the table was replaced: what/.test(r.answer.text)) takeWhole(p, fail);
  else if (sure.length || p.units.length) fail(`merged where the model sees conflicts in ${[...sure, ...p.units].join(" ")}`);
  const escalated = /escalated:/.test(r.answer.text);
  if (escalated && !p.policy.rows) fail("escalated without a strategy");
  if (escalated && p.settled?.otherwise && !p.settled.escalated) {
    const other = p.settled.otherwise();
    if (!other.stuck && other.escalated) p.settled = other;
  }
  const nothing = changesNothing(p, ours);
  if (result === "dry-run") return options.includes("dry-run") ? is("dry-run") : fail("a dry run that nobody asked for");
  if (result === "up-to-date") {
    if (!(p.oursIsBase || p.back) || !nothing) fail("up-to-date where there is something to merge");
    return is("up-to-date");
  }
  if (!WROTE.includes(result)) fail("no such result is known");
  if (options.includes("dry-run")) fail("a dry run that wrote");
  if (result === "empty-merge" && !nothing) fail("empty-merge where something changes");
  if (result === "fast-forward" && (!p.oursIsBase || options.includes("ff=never"))) fail("no fast-forward was due");
  return is(escalated ? "merged, an update taken back" : result, true);
}

// A side that replaced the table, or the other, was taken as a whole, as the strategy says.
function takeWhole(p, fail) {
  const winner = { "source-wins": p.theirsState, "dest-wins": p.oursState }[p.policy.rows];
  if (!winner || !any("replaced")(p)) fail("a side was taken as a whole for no reason");
  p.settled = { rows: winner.rows, open: new Set(), maybe: [] };
  p.columns = winner.columns;
}

function conflict(r, p, addresses, fail) {
  const count = Number(r.answer.conflicts),
    said = [...r.answer.text.matchAll(/unit: row (\d+) of fragment \d+/g)].map((x) => Number(x[1])),
    keys = [...r.answer.text.matchAll(/unit: "?((?:config|table metadata|schema metadata) key [^\s"]+)/g)].map((x) => x[1]);
  if (!(count > 0)) fail("a conflict without an entry");
  if (/kind: replaced/.test(r.answer.text)) return any("replaced")(p) ? "conflict (replaced)" : fail("no side replaced the table");
  for (const key of keys) if (!p.units.includes(key)) fail(`${key} is in no conflict that the model sees`);
  // Indexes are no part of the model: only that they may clash where both sides have some.
  if (/kind: index/.test(r.answer.text) && count === 1) return "conflict (index)";
  const possible = [...p.sure, ...p.maybe, ...p.units, ...p.perhaps];
  if (p.settled?.maybe) possible.push(...p.settled.maybe);
  // Copies that a merge brought along with a compaction: whether the other side's rows are the same is not told.
  const hidden = p.ours.moved || p.theirs.moved;
  if (p.settled && !p.units.length && p.sure.length)
    return p.settled.stuck || p.settled.escalated ? "conflict (in spite of a strategy)" : strategyLost(p, fail);
  if (!p.sure.length && !p.units.length) {
    if (p.replaced || (p.back && p.theirs.replaced)) return "conflict (replaced)";
    if (!possible.length && !hidden) fail("a conflict where the model sees none");
    return possible.length ? "cautious conflict (merged before, compacted or cleaned)" : "cautious conflict (compaction merged before)";
  }
  if (hidden || p.schemaChanged || p.base.count > 1 || p.settled) return "conflict";
  if (count < p.sure.length + p.units.length || count > possible.length)
    fail(`${count} conflicts where the model sees ${[...p.sure, ...p.units].join(" ")} (and perhaps ${[...p.maybe, ...p.perhaps].join(" ")})`);
  if (!addresses) return "conflict";
  // Fragments get other ids when they are merged, but a row keeps its place in its fragment.
  const known = new Set([...p.sure, ...p.maybe].flatMap((tok) => [...(addresses.get(tok) ?? [])]));
  for (const row of said) if (!known.has(row)) fail(`row ${row} is in no conflict that the model sees`);
  return "conflict";
}
// The strategy's winner stands already in every row, so nothing can be in the way but rows that are not told for certain.
function strategyLost(p, fail) {
  if (!p.maybe.length && !p.settled.maybe.length) fail("a conflict that the strategy decides");
  return "cautious conflict (strategy)";
}
