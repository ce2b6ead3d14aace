// SPDX-License-Identifier: Apache-2.0
// Two columns are one only if one came from the other. The same name, the same field id and the same type say nothing where
// each line made its own: what the source's new rows hold in its column never shows under the target's.
import assert from "node:assert/strict";
import { load } from "../interop/manifest.mjs";
import { plus, rows, without } from "../harness/rows.mjs";
import { ctl } from "../harness/control.mjs";
import { checkThenUnmount, control, onEach } from "../harness/tip.mjs";
import { checkColumns, fieldsOf, merge, mergeFails, pick, revert, scratch } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);
const idOf = (g, branch, name) => load(g.storage(branch)).fields.find((f) => f.name === name).id;
// As merge, in as many versions as it takes.
async function replay(g, target, line) {
  const r = await ctl(control(g, target, ".merge"), line);
  assert.equal(r.code, 0, `${line}: ${r.answer.text}`);
  assert.equal(r.answer.result, "merged");
  checkColumns(g, target);
}
const add = (g, branch, name, sql) => g.op(branch, "addColumn", { name, sql });

// What f calls its column and what it puts there; main's own is `extra`, n + 1. `first`: main adds another column before, so
// that the ids differ.
const CASES = {
  "same id, same name, same type": { name: "extra", sql: "n + 1000", value: (r) => r.n + 1000 },
  "same id, same name, other type": { name: "extra", sql: "concat('f', v)", value: (r) => `f${r.v}` },
  "same id, other name": { name: "other", sql: "n + 1000", value: (r) => r.n + 1000 },
  "other id, same name, same type": { name: "extra", sql: "n + 1000", value: (r) => r.n + 1000, first: true },
  "other id, same name, other type": { name: "extra", sql: "concat('f', v)", value: (r) => `f${r.v}`, first: true },
};
const MAIN = (c) => (r) => ({ ...(c.first && { before: r.id }), extra: r.n + 1 });

// f: 3 its column, 4 rows 100..102 with values in it. main: 3 (and 4) its own. Both from main@2.
async function twoColumns(t, engine, c) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await add(g, "f", c.name, c.sql);
  await g.op("f", "add", { rows: plus(rows(100, 3, "f"), (r) => ({ [c.name]: c.value(r) })) });
  if (c.first) await add(g, "main", "before", "id");
  await add(g, "main", "extra", "n + 1");
  assert.equal(idOf(g, "f", c.name) === idOf(g, "main", "extra"), !c.first, "the ids are as the case says");
  return g;
}
const nulls = (c) => () => ({ ...(c.first && { before: null }), extra: null });

for (const [what, c] of Object.entries(CASES)) {
  const merged = (own) => [...plus(plus(TWENTY, MAIN(c)), own), ...plus(plus(rows(100, 3, "f"), nulls(c)), own)],
    clash = c.name === "extra",
    ofF = (r) => (clash ? {} : { [c.name]: c.value(r) });

  onEach(`pick, ${what}: rows come without the column`, async (t, engine) => {
    const g = await twoColumns(t, engine, c);
    await pick(g, "main", "f@4");
    await checkThenUnmount(g, { main: [...plus(TWENTY, MAIN(c)), ...plus(rows(100, 3, "f"), nulls(c))] });
  });

  for (const [verb, words, run] of [
    ["merge", "f", merge],
    ["replay", "f replay", replay],
  ])
    onEach(`${verb}, ${what}: ${clash ? "a conflict, and the target's column alone where it wins" : "both columns"}`, async (t, engine) => {
      const g = await twoColumns(t, engine, c);
      if (clash) assert.match((await mergeFails(g, "main", words, "ECANCELED", "conflict")).text, /column extra/);
      await run(g, "main", `${words}${clash ? " strategy=dest-wins" : ""}`);
      await checkThenUnmount(g, { main: merged(ofF) });
    });

  onEach(`merge after both compacted all, ${what}: no data is left in common`, async (t, engine) => {
    const g = await twoColumns(t, engine, c);
    await g.op("f", "optimize");
    await g.op("main", "optimize");
    const a = clash && (await mergeFails(g, "main", "f", ["ECANCELED", "EOPNOTSUPP"], ["conflict", "refused"]));
    if (a) assert.match(a.text, /extra|compact/);
    await checkThenUnmount(g, { main: plus(TWENTY, MAIN(c)) });
  });
}

// One line: a column is dropped, and its id (no data file names it any more) and its name are given out again.
const AGAIN = {
  "same id, same name, same type": { name: "extra", sql: "n + 5" },
  "same id, same name, other type": { name: "extra", sql: "concat('x', v)" },
  "same id, other name": { name: "other", sql: "n + 5" },
};
const again = { "n + 5": (r) => r.n + 5, "concat('x', v)": (r) => `x${r.v}` };

// main: 3 adds extra, 4 rows 100..102 with it, 5 drops extra, 6 adds the new column.
async function addedAgain(t, engine, c, before = () => {}) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await add(g, "main", "extra", "n + 1");
  await before(g);
  await g.op("main", "add", { rows: plus(rows(100, 3, "m"), (r) => ({ extra: r.n + 1 })) });
  const old = idOf(g, "main", "extra");
  await g.op("main", "dropColumns", { names: ["extra"] });
  await g.op("main", "delete", { where: "id >= 100" });
  await g.op("main", "optimize"); // no file names the old id any more
  await add(g, "main", c.name, c.sql);
  assert.equal(idOf(g, "main", c.name), old, "the id is given out again");
  return g;
}

for (const [what, c] of Object.entries(AGAIN)) {
  const now = plus(TWENTY, (r) => ({ [c.name]: again[c.sql](r) }));

  onEach(`merge, dropped and added again, ${what}: rows come without the old column`, async (t, engine) => {
    const g = await addedAgain(t, engine, c, (x) => x.fork("f"));
    await g.op("f", "add", { rows: plus(rows(200, 2, "f"), () => ({ extra: 77 })) });
    await merge(g, "main", "f");
    await checkThenUnmount(g, { main: [...now, ...plus(rows(200, 2, "f"), () => ({ [c.name]: null }))] });
  });

  onEach(`revert, dropped and added again, ${what}: the rows that come back have no value in it`, async (t, engine) => {
    const g = await scratch(t, engine, rows(0, 10), rows(10, 10), rows(50, 2));
    await add(g, "main", "extra", "n + 1"); // 4
    await g.op("main", "delete", { where: "id >= 50" }); // 5: the fragment goes
    await g.op("main", "dropColumns", { names: ["extra"] });
    await g.op("main", "optimize");
    await add(g, "main", c.name, c.sql);
    await revert(g, "main", "5");
    assert.deepEqual(fieldsOf(g).map(([name]) => name), ["id", "v", "n", c.name]);
    await checkThenUnmount(g, { main: [...now, ...plus(rows(50, 2), () => ({ [c.name]: null }))] });
  });
}
