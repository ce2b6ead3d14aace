// SPDX-License-Identifier: Apache-2.0
// The pair table is whole: a case for each cell of merge-semantics section 5, and each case in both directions, by each of
// the engines in turn.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CELLS } from "./cells.mjs";
import { directions } from "./run.mjs";

const OPERATIONS = ["append", "delete", "update", "add column", "drop column", "alter", "compaction", "index", "overwrite, restore", "config"];

test("each of the 55 cells has a case, and each case both directions", () => {
  const cells = OPERATIONS.flatMap((a, i) => OPERATIONS.slice(i).map((b) => `${a} | ${b}`));
  assert.equal(cells.length, 55);
  assert.deepEqual(CELLS.map(([a, b]) => `${a} | ${b}`).sort(), cells.sort());
  assert.ok(CELLS.every(([, , cases]) => cases.length > 0));
  const all = [...directions()],
    cases = CELLS.reduce((n, [, , list]) => n + list.length, 0);
  assert.equal(all.length, 2 * cases);
  for (let i = 0; i < all.length; i += 2) {
    const [one, other] = all.slice(i, i + 2);
    assert.equal(one.source, other.target, one.name);
    assert.equal(one.target, other.source, one.name);
    assert.notEqual(one.engine, other.engine, one.name);
  }
});
