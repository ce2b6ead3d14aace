// SPDX-License-Identifier: Apache-2.0
// Every conflict of the pair table, settled by a choice: ours and theirs, in both directions. What a side did alone is what
// choosing it gives, since in these cases the unit in conflict is all that both did; the exceptions are listed.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { load } from "../interop/manifest.mjs";
import { aborts, choose, continues, doesNotContinue, numbers, stopsOn } from "../harness/conflicts.mjs";
import { ctl } from "../harness/control.mjs";
import { expectRows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { control } from "../harness/tip.mjs";
import { checkColumns, fieldsOf } from "../harness/verbs.mjs";
import { difference, ENGINES, snapshot, workspace } from "../harness/workspace.mjs";
import { together } from "../pairs/operations.mjs";
import { directions, ground, statesOf } from "../pairs/run.mjs";

const NOTHING = { label: "nothing" };
const REFUSED = { refused: true }; // the choice itself is refused, with the reason
const INSERTED = { stuck: /inserted rows too/ }; // an update that inserted rows as well is not taken back for the sake of one row

// What choosing `side` gives: the state, or that it cannot be.
function outcome(c, side, base) {
  const winner = side === "ours" ? c.target : c.source,
    loser = side === "ours" ? c.source : c.target,
    alone = { state: together(base, winner, NOTHING) },
    both = { state: together(base, winner, loser) },
    is = (x, word) => x.label.startsWith(word),
    pair = (a, b) => (is(winner, a) && is(loser, b) ? "winner first" : is(loser, a) && is(winner, b) ? "loser first" : null);
  // A column without nulls has no values for rows that came otherwise; where the update loses there are none.
  if (winner.add?.nullable === false || loser.add?.nullable === false)
    return winner.add && loser.moved ? { ...alone, columnRefused: true } : REFUSED;
  // New rows may hold nulls: they can win over the ban on nulls, not the other way round.
  if (pair("alter n nullable", "append") || pair("alter n nullable", "update")) return winner.alter ? REFUSED : alone;
  if (loser.moved && loser.more?.length) return winner.replaced ? alone : INSERTED;
  // An updated row has no value in a new column of the other side, and keeps what it was updated to.
  if (winner.moved && loser.add) return both;
  // Values were updated in a column that is gone there: only the drop can be taken.
  if (pair("update 3 {\"w\"", "drop w")) return winner.drop ? both : REFUSED;
  // What is dropped here cannot come back, but for a retyped column, which has files of its own.
  if (side === "theirs" && loser.drop && (winner.index || (winner.alter && !winner.alter.type))) return REFUSED;
  if (pair("add text", "alter v to text")) return side === "ours" && c.target.alter ? alone : REFUSED;
  // Stock retypes a column by a new one in its place: the renamed one is another unit.
  if (pair("alter n float", "alter n to number")) {
    if (c.target.alter.type) return side === "ours" ? alone : REFUSED;
    const n = (r, b) => ({ ...r, n: b.n });
    if (side === "ours")
      return { state: { ...alone.state, rows: alone.state.rows.map((r) => n(r, base.rows.find((b) => b.id === r.id))), fields: [...alone.state.fields, ["n", "float", true, {}]] } };
  }
  return alone;
}

async function check(g, target, state, c) {
  const m = checkColumns(g, target);
  assert.deepEqual(new Map(fieldsOf(g, target).map((f) => [f[0], f])), new Map(state.fields.map((f) => [f[0], f])), "columns");
  assert.deepEqual(m.config, state.config);
  const [one, other] = g.names % 2 ? ENGINES : ENGINES.toReversed();
  const seen = [await stock[one].read(g.m.tree(target)), await stock[other].read(g.ds, target)];
  for (const answer of seen) {
    expectRows(answer, state.rows, target);
    if (c.source.index && c.target.index) assert.deepEqual(new Set(answer.indexes), new Set(state.indexes));
  }
}

async function settle(g, c, side) {
  const { source, target, base } = await statesOf(g, c),
    expected = outcome(c, side, base),
    files = snapshot(g.root),
    version = load(g.storage(target)).version;
  const first = await ctl(control(g, target), `${source} dry-run`);
  if (first.answer.result === "refused") return assert.equal(c.expected.stops, "either", first.answer.text);
  await stopsOn(g, target, source);
  let refused = 0;
  for (const k of numbers(g, target)) {
    const r = await choose(g, target, k, side);
    if (!r.errno) continue;
    assert.equal(r.errno, "EOPNOTSUPP", r.answer.text);
    assert.match(r.answer.error, new RegExp(`^${side} cannot be taken for .*: .`), "it says why");
    refused++;
  }
  assert.deepEqual(difference(files, snapshot(g.root)), [], "choosing writes nothing");
  assert.equal(refused > 0, Boolean(expected.refused ?? expected.columnRefused), `choices refused: ${refused}`);
  if (expected.refused || expected.stuck) {
    const a = await doesNotContinue(g, target);
    if (expected.stuck) assert.match(a.text, expected.stuck);
    return aborts(g, target);
  }
  const a = await continues(g, target, ["merged", "empty-merge"]);
  assert.equal(Number(a.version), version + 1);
  await check(g, target, expected.state, c);
  const again = await ctl(control(g, target), source);
  assert.equal(again.answer.result, "up-to-date", again.answer.text);
}

const CASES = [...directions()].filter((c) => c.expected.stops === "conflict" || /no nulls/.test(c.name));
for (const engine of ENGINES)
  describe(`settled by choice [written by ${engine}]`, () => {
    const undo = [];
    let made;
    const g = () => (made ??= ground(workspace({ after: (fn) => undo.push(fn) }), engine));
    after(async () => {
      for (const fn of undo) await fn();
    });
    for (const c of CASES.filter((x) => x.engine === engine && x.expected.stops))
      for (const side of ["ours", "theirs"]) test(`${side}: ${c.name}`, async () => settle(await g(), c, side));
  });
