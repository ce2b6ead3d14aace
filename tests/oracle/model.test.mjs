// SPDX-License-Identifier: Apache-2.0
// The model itself, on histories small enough to see what is right.
import { test } from "node:test";
import assert from "node:assert/strict";
import { Model } from "./model.mjs";
import { COLUMNS, newRow } from "./stock.mjs";

const rows = (...toks) => new Map(toks.map((t, i) => [t, newRow(i, t)]));
const fresh = () => {
  const m = new Model(rows("a", "b", "c"), COLUMNS, 1);
  m.fork("dev", m.tip("main"), "dev#1");
  return m;
};
const without = (m, branch, tok, how) => {
  const left = new Map(m.tip(branch).rows);
  left.delete(tok);
  if (how === "update") left.set(`${tok}.${branch}`, { ...newRow(9, `${tok}.${branch}`), from: tok });
  m.commit(branch, m.tip(branch).number + 1, how, { rows: left });
};
const add = (m, branch, tok) =>
  m.commit(branch, m.tip(branch).number + 1, "append", { rows: new Map([...m.tip(branch).rows, ...rows(tok)]) });
const predict = (m, target, source) => m.merge(m.tip(target), m.tip(source));
const merge = (m, target, source) => {
  const p = predict(m, target, source);
  m.written(target, "merge", p, p.rows, m.tip(target).number + 1, {});
  return [...p.rows.keys()].sort().join(" ");
};

test("rows of both sides are united", () => {
  const m = fresh();
  without(m, "main", "a", "delete");
  add(m, "main", "x");
  without(m, "dev", "b", "delete");
  add(m, "dev", "y");
  assert.equal(merge(m, "main", "dev"), "c x y");
  assert.equal(predict(m, "main", "dev").result, "up-to-date");
  assert.equal(predict(m, "dev", "main").oursIsBase, true);
  assert.equal(merge(m, "dev", "main"), "c x y");
});

for (const [ours, theirs, result] of [
  ["delete", "delete", "clean"],
  ["delete", "update", "conflict"],
  ["update", "delete", "conflict"],
  ["update", "update", "conflict"],
])
  test(`one row, ${ours} here and ${theirs} there: ${result}`, () => {
    const m = fresh();
    without(m, "main", "a", ours);
    without(m, "dev", "a", theirs);
    const p = predict(m, "main", "dev");
    assert.equal(p.result, result);
    assert.deepEqual(p.sure, result === "conflict" ? ["a"] : []);
  });

test("an update whose new row is deleted later is still an update", () => {
  const m = fresh();
  without(m, "main", "a", "update");
  without(m, "main", "a.main", "delete");
  without(m, "dev", "a", "delete");
  assert.equal(predict(m, "main", "dev").result, "conflict");
});

test("after a merge the source is the base: only what is new since then comes along", () => {
  const m = fresh();
  add(m, "dev", "x");
  merge(m, "main", "dev");
  without(m, "main", "x", "delete");
  add(m, "dev", "y");
  assert.equal(merge(m, "main", "dev"), "a b c y");
});

test("a branch that was deleted and made anew is another line", () => {
  const m = fresh();
  add(m, "dev", "x");
  merge(m, "main", "dev");
  m.drop("dev");
  m.fork("dev", m.tip("main"), "dev#2");
  add(m, "dev", "y");
  const p = predict(m, "main", "dev");
  assert.equal(p.base.of[0], m.tip("main"));
  assert.equal(merge(m, "main", "dev"), "a b c x y");
});

test("merged crosswise: two bases, and what they merge to is the base", () => {
  const m = fresh();
  add(m, "main", "x");
  without(m, "dev", "a", "delete");
  const [ours, theirs] = [m.tip("main"), m.tip("dev")];
  const there = m.merge(theirs, ours),
    here = m.merge(ours, theirs);
  m.written("main", "merge", here, here.rows, 3, {});
  m.written("dev", "merge", there, there.rows, 3, {});
  add(m, "dev", "y");
  const p = predict(m, "main", "dev");
  assert.equal(p.base.count, 2);
  assert.equal([...p.base.rows.keys()].join(" "), "b c x");
  assert.equal(merge(m, "main", "dev"), "b c x y");
});

test("a restore takes back what was merged, and it can be merged again", () => {
  const m = fresh();
  add(m, "dev", "x");
  merge(m, "main", "dev");
  const { rows: old, carried } = m.branches.get("main").states.get(1);
  m.commit("main", 3, "replace", { rows: old, carried });
  assert.equal(merge(m, "main", "dev"), "a b c x");
});

// --- picks, reverts, undos ---

const line = (m, name) => m.branches.get(name);
const tokens = (rows) => [...rows.keys()].sort().join(" ");

test("a pick brings one commit, once; one that stands on what the target has not is a conflict", () => {
  const m = fresh();
  add(m, "dev", "x"); // 2
  without(m, "dev", "a", "update"); // 3
  without(m, "dev", "a.dev", "update"); // 4
  const p = m.pick(m.tip("main"), line(m, "dev"), 3, 3);
  assert.equal(tokens(p.rows), "a.dev b c");
  m.written("main", "pick", p, p.rows, 2, {});
  assert.equal(m.pick(m.tip("main"), line(m, "dev"), 3, 3).result, "up-to-date");
  assert.deepEqual([...m.tip("main").picked], ["dev#1:3"]);
  assert.equal(m.pick(fresh().tip("main"), line(m, "dev"), 4, 4).result, "conflict");
  const merged = predict(m, "main", "dev");
  assert.equal(tokens(merged.rows), "a.dev.dev b c x");
});

test("of a range, commits at its ends that are held are left out", () => {
  const m = fresh();
  add(m, "dev", "x"); // 2
  merge(m, "main", "dev");
  without(m, "dev", "x", "delete"); // 3
  const p = m.pick(m.tip("main"), line(m, "dev"), 2, 3);
  assert.equal(p.base.number, 2);
  assert.equal(tokens(p.rows), "a b c");
});

test("a revert takes one commit back; where its row went on since, it is a conflict", () => {
  const m = fresh();
  without(m, "main", "a", "update"); // 2
  add(m, "main", "x"); // 3
  assert.equal(tokens(m.revert(m.tip("main"), 2).rows), "a b c x");
  without(m, "main", "a.main", "delete"); // 4: bringing a back would undo this one too
  assert.deepEqual(m.revert(m.tip("main"), 2).sure, ["a.main"]);
  assert.equal(tokens(m.revert(m.tip("main"), 3).rows), "b c");
});

test("an undo moves common ground back, its own revert moves it forward", () => {
  const m = fresh();
  add(m, "dev", "x");
  merge(m, "main", "dev"); // 2
  m.fork("exp", m.tip("main"), "exp#1");
  const undo = m.undo(m.tip("main"));
  assert.equal(tokens(undo.rows), "a b c");
  m.written("main", "undo", undo, undo.rows, 3, {});
  assert.equal(m.undo(m.tip("main")).errno, "ENOENT");
  assert.equal(tokens(predict(m, "main", "exp").rows), "a b c x");
  const again = m.revert(m.tip("main"), 3);
  assert.equal(again.carried.get("dev#1"), 2);
  assert.equal(tokens(again.rows), "a b c x");
});

// --- strategies and keys ---

test("by strategy: the winner's row stands, or the loser's update goes as a whole", () => {
  const m = fresh();
  const both = new Map([...m.tip("main").rows].filter(([tok]) => tok === "c"));
  for (const tok of ["a", "b"]) both.set(`${tok}.main`, { ...newRow(9, `${tok}.main`), from: tok });
  m.commit("main", 2, "update", { rows: both });
  without(m, "dev", "a", "delete");
  const settled = (rows) => m.merge(m.tip("main"), m.tip("dev"), { rows }).settled;
  assert.equal(tokens(settled("dest-wins").rows), "a.main b.main c");
  assert.equal(settled("dest-wins").escalated, false);
  assert.equal(tokens(settled("source-wins").rows), "b c");
  assert.equal(settled("source-wins").escalated, true);
  without(m, "main", "b.main", "delete"); // what is to be taken back was changed later
  assert.equal(settled("source-wins").stuck, true);
});

test("keys of the maps go by the table", () => {
  const m = fresh();
  m.commit("main", 2, "configure", { maps: new Map([["config key a", "1"], ["config key b", "1"]]) });
  m.commit("dev", 2, "configure", { maps: new Map([["config key a", "2"], ["schema metadata key c", "1"]]) });
  assert.deepEqual(predict(m, "main", "dev").units, ["config key a"]);
  const p = m.merge(m.tip("main"), m.tip("dev"), { config: "source-wins" });
  assert.deepEqual(p.units, []);
  assert.deepEqual([...p.maps].sort(), [["config key a", "2"], ["config key b", "1"], ["schema metadata key c", "1"]]);
});

test("a strategy takes back the newest update first: the one before it is then as it was made", () => {
  const m = fresh();
  for (const tok of ["a", "b"]) without(m, "main", tok, "delete");
  const renew = (mark, ...toks) => {
    const left = new Map(m.tip("dev").rows);
    for (const tok of toks) {
      left.delete(tok);
      left.set(`${tok}.${mark}`, { ...newRow(9, `${tok}.${mark}`), from: tok });
    }
    m.commit("dev", m.tip("dev").number + 1, "update", { rows: left });
  };
  renew("u", "a", "c");
  renew("w", "b", "c.u");
  const p = m.merge(m.tip("main"), m.tip("dev"), { rows: "dest-wins" });
  assert.deepEqual(p.sure.sort(), ["a", "b"]);
  assert.equal(p.settled.escalated, true);
  assert.deepEqual([...p.settled.rows.keys()], ["c"]);
});

for (const [schema, left] of [["source-wins", "theirs"], ["dest-wins", "ours"], ["fail", undefined]])
  test(`both sides add a column of one name, schema=${schema}`, () => {
    const m = fresh();
    for (const [branch, id] of [["main", "ours"], ["dev", "theirs"]])
      m.commit(branch, m.tip(branch).number + 1, "addColumn", { columns: new Map([...m.tip(branch).columns, [id, "extra"]]) });
    const p = m.merge(m.tip("main"), m.tip("dev"), { schema });
    if (left) assert.deepEqual([...p.columns.keys()].filter((id) => ["ours", "theirs"].includes(id)), [left]);
    assert.deepEqual(p.units, left ? [] : ["two columns of one name"]);
  });
