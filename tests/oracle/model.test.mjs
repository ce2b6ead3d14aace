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
