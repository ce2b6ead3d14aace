// SPDX-License-Identifier: Apache-2.0
// Strategies: what decides a unit that both sides changed, for all classes of unit or for one. A strategy decides units
// in conflict only; everything else merges as without it.
import assert from "node:assert/strict";
import { configure } from "../interop/configure.mjs";
import { load, tip } from "../interop/manifest.mjs";
import { changed, plus, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mergesOrRefuses, mounted, onEach } from "../harness/tip.mjs";
import { fieldsOf, merge, mergeFails, pick, scratch, undo, withOps } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);
const maps = (g, branch = "main") => {
  const m = load(g.storage(branch)),
    own = (o) => Object.fromEntries(Object.entries(o).filter(([k]) => !k.startsWith("lancefs.")));
  return {
    config: own(m.config),
    table: own(m.metadata),
    schema: Object.fromEntries((m.tree.schema_metadata ?? []).map((e) => [e.key[0], e.value?.[0] ?? ""])),
  };
};
const ALL = (values) => ({ config: values, table: values, schema: values });

// --- config, table and schema metadata, key by key ---

onEach("config, table and schema metadata merge key by key, there and back", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  configure(g.ds, ALL({ keep: "0", gone: "0", mine: "0", theirs: "0", both: "0", "gone too": "0" }));
  await g.fork("f");
  configure(g.ds, ALL({ mine: "m", gone: null, both: "b", "new of main": "1", "new of both": "2" }));
  configure(g.storage("f"), ALL({ theirs: "f", "gone too": null, both: "b", "new of f": "3", "new of both": "2" }));
  await g.op("f", "delete", { where: "id = 3" });
  await merge(g, "main", "f");
  const all = ALL({
    keep: "0",
    mine: "m",
    theirs: "f",
    both: "b",
    "new of main": "1",
    "new of f": "3",
    "new of both": "2",
  });
  assert.deepEqual(maps(g), all);
  await merge(g, "f", "main", "fast-forward");
  assert.deepEqual(maps(g, "f"), all);
  await checkThenUnmount(g, { main: without(TWENTY, 3), f: without(TWENTY, 3) });
});

// The rows of the table in which both sides changed a key: base, ours, theirs, and who wins it.
const CLASHES = [
  ["changed on both sides", "0", "m", "f"],
  ["added on both sides", null, "m", "f"],
  ["removed here, changed there", "0", null, "f"],
  ["changed here, removed there", "0", "m", null],
];
for (const [what, base, ours, theirs] of CLASHES)
  onEach(`a key ${what}: conflict, source-wins, dest-wins, for each of the three maps`, async (t, engine) => {
    const g = await scratch(t, engine, TWENTY);
    const set = (dir, value, more) => configure(dir, ALL({ ...(value === undefined ? {} : { k: value }), ...more }));
    set(g.ds, base ?? undefined, { other: "0" });
    await g.fork("f", "source", "dest");
    for (const branch of ["main", "source", "dest"]) set(g.storage(branch), ours, { own: "m" });
    set(g.storage("f"), theirs, { more: "f" });
    for (const line of ["f", "f strategy=fail", "f rows=source-wins schema=source-wins", "f strategy=source-wins config=fail"]) {
      const a = await mergeFails(g, "main", line, "ECANCELED", "conflict");
      assert.equal(a.conflicts, "3", "k alone, in each map");
      assert.match(a.text, /config key k[\s\S]*table metadata key k[\s\S]*schema metadata key k/);
      for (const [name, value] of [["base", base], ["ours", ours], ["theirs", theirs]])
        assert.match(a.text, new RegExp(`${name}: "?${value ?? "\\(absent\\)"}"?$`, "m"), `${name} is told`);
    }
    await merge(g, "source", "f config=source-wins");
    await merge(g, "dest", "f strategy=dest-wins");
    const expected = (value) => ALL({ other: "0", own: "m", more: "f", ...(value === null ? {} : { k: value }) });
    assert.deepEqual(maps(g, "source"), expected(theirs));
    assert.deepEqual(maps(g, "dest"), expected(ours));
    assert.equal(load(g.storage("source")).transaction.properties["lancefs.policy"] !== undefined, true, "the policy is recorded");
    await merge(g, "dest", "f", "up-to-date");
    await checkThenUnmount(g, { main: TWENTY, source: TWENTY, dest: TWENTY });
  });

// --- schema ---

onEach("C73 field_meta meta: the winner's value of the key, every other key as without a strategy", async (t, engine) => {
  const g = withOps(await mounted(t, "field_meta", engine));
  const ten = rows(0, 10).map(({ id, v }) => ({ id, v }));
  await g.op("main", "fork", { name: "dest", from: "main" });
  await mergeFails(g, "main", "meta rows=source-wins config=source-wins", "ECANCELED", "conflict");
  await merge(g, "main", "meta schema=source-wins");
  assert.deepEqual(fieldsOf(g)[1][3], { unit: "branch", a: "1", b: "2" });
  await merge(g, "dest", "meta strategy=dest-wins");
  assert.deepEqual(fieldsOf(g, "dest")[1][3], { unit: "main", a: "1", b: "2" });
  await checkThenUnmount(g, { main: ten, dest: ten });
});

onEach("a column renamed on both sides: the winner's name, everybody's rows", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f");
  await g.op("main", "alter", { path: "v", rename: "mine" });
  await g.op("main", "fork", { name: "dest", from: "main" });
  await g.op("f", "alter", { path: "v", rename: "theirs" });
  await g.op("f", "delete", { where: "id = 3" });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  const named = (name) => without(TWENTY, 3).map(({ v, ...r }) => ({ ...r, [name]: v }));
  await merge(g, "main", "f schema=source-wins");
  await checkTip(g, "main", named("theirs"));
  await merge(g, "dest", "f schema=dest-wins");
  await checkThenUnmount(g, { main: named("theirs"), dest: named("mine") });
});

onEach("one name added on both sides: the winner's column with its values, and rows of both", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("main", "addColumn", { name: "x", sql: "n + 1" });
  await g.op("main", "fork", { name: "dest", from: "main" });
  await g.op("f", "addColumn", { name: "x", sql: "concat('x', v)" });
  await g.op("f", "add", { rows: plus(rows(100, 2, "f"), () => ({ x: "new" })) });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await merge(g, "main", "f schema=source-wins");
  await checkTip(g, "main", [
    ...plus(TWENTY, (r) => ({ x: `x${r.v}` })),
    ...plus(rows(100, 2, "f"), () => ({ x: "new" })),
  ]);
  await merge(g, "dest", "f schema=dest-wins");
  await checkThenUnmount(g, {
    dest: [...plus(TWENTY, (r) => ({ x: r.n + 1 })), ...plus(rows(100, 2, "f"), () => ({ x: null }))],
  });
});

onEach("altered here and dropped there: the winner says whether the column is there", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f");
  await g.op("main", "alter", { path: "v", rename: "text" });
  await g.op("main", "fork", { name: "dest", from: "main" });
  await g.op("f", "dropColumns", { names: ["v"] });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  await merge(g, "main", "f schema=source-wins");
  await checkTip(g, "main", TWENTY.map(({ v, ...r }) => r));
  await merge(g, "dest", "f schema=dest-wins", ["merged", "empty-merge"]);
  await checkTip(g, "dest", TWENTY.map(({ v, ...r }) => ({ ...r, text: v })));
  // Dropped here, altered there: the source's column cannot come back, as its data may be gone.
  await mergeFails(g, "f", "main@2 schema=source-wins", "ECANCELED", "conflict");
  await merge(g, "f", "main@2 schema=dest-wins", ["merged", "empty-merge"]);
  await checkThenUnmount(g, { f: TWENTY.map(({ v, ...r }) => r) });
});

// --- rows ---

const BASE = rows(0, 100);
const MAIN = without(changed(BASE, 12, { v: "main" }), 40);

onEach("delete_vs_update d_u: deleted there, updated here", async (t, engine) => {
  const g = withOps(await mounted(t, "delete_vs_update", engine));
  await mergeFails(g, "main", "d_u rows=fail", "ECANCELED", "conflict");
  await mergeFails(g, "main", "d_u config=source-wins schema=dest-wins", "ECANCELED", "conflict");
  await merge(g, "main", "d_u rows=dest-wins", ["merged", "empty-merge"]); // main's updated row stands already
  await checkTip(g, "main", MAIN);
  await merge(g, "d_u", "main@3 rows=source-wins");
  await checkThenUnmount(g, { main: MAIN, d_u: MAIN });
});

onEach("delete_vs_update u_d: updated there, deleted here", async (t, engine) => {
  const g = withOps(await mounted(t, "delete_vs_update", engine));
  await mergeFails(g, "main", "u_d", "ECANCELED", "conflict");
  await merge(g, "main", "u_d rows=source-wins"); // the branch's new row 40 comes
  const all = changed(changed(BASE, 12, { v: "main" }), 40, { v: "branch" });
  await checkTip(g, "main", all);
  await merge(g, "u_d", "main", "fast-forward");
  await checkThenUnmount(g, { main: all, u_d: all });
});

for (const [branch, strategies, row] of [
  ["u_d", ["rows=dest-wins", "strategy=dest-wins"], 40],
  ["d_u", ["rows=source-wins", "strategy=source-wins"], 12],
  ["u_u", ["rows=source-wins", "rows=dest-wins", "strategy=source-wins", "strategy=dest-wins"], 12],
])
  onEach(`delete_vs_update ${branch} where the loser has a row of its own: decided right, or a conflict and nothing changed`, async (t, engine) => {
    const g = withOps(await mounted(t, "delete_vs_update", engine));
    for (const [i, strategy] of strategies.entries()) {
      await g.op("main", "fork", { name: `copy${i}`, from: "main" });
      const before = tip(g.storage(`copy${i}`));
      const winner = strategy.endsWith("source-wins") ? branch : "main";
      // What the row is when the winner has it; undefined where the winner deleted it.
      const fate = { main: { 12: "main", 40: undefined }, u_d: { 40: "branch" }, d_u: { 12: undefined }, u_u: { 12: "branch" } }[winner][row];
      const rest = without(MAIN, row);
      const want = fate === undefined ? rest : [...rest, { ...BASE[row], v: fate }];
      const done = await mergesOrRefuses(g, `copy${i}`, `${branch} ${strategy}`, want);
      if (done === "refused") {
        assert.equal(tip(g.storage(`copy${i}`)), before);
        await checkTip(g, `copy${i}`, MAIN);
      }
    }
    await checkThenUnmount(g, { main: MAIN });
  });

// f updated 8 and 9, and merged a branch that had deleted them, its own rows winning. To everybody else they are updated still.
for (const [what, [branch, after]] of Object.entries({
  "a third branch's delete": ["y", () => {}],
  "the target's own delete, undone since": ["x", (g) => undo(g, "f", "steps=1")],
}))
  onEach(`rows updated here that outlived ${what} are not deleted for the next merge`, async (t, engine) => {
    const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
    await g.fork("f", "x", "y");
    await g.op("f", "update", { where: "id IN (8, 9)", values: { v: "f" } });
    for (const b of ["x", "y"]) await g.op(b, "delete", { where: "id >= 6 AND id <= 9" });
    await merge(g, "f", `${branch} rows=dest-wins`);
    await after(g);
    await g.op("f", "add", { rows: rows(100, 2, "f") });
    const gone = [...without(TWENTY, 6, 7, 8, 9), ...rows(100, 2, "f")];
    assert.match((await mergeFails(g, "x", "f", "ECANCELED", "conflict")).text, /conflicts: 2/);
    await g.op("main", "fork", { name: "z", from: "x" });
    await merge(g, "x", "f rows=dest-wins");
    await merge(g, "z", "f rows=source-wins");
    await checkThenUnmount(g, { x: gone, z: [...gone, ...changed(rows(8, 2), [8, 9], { v: "f" })] });
  });

onEach("an update that a strategy took back is given up for good: what its branch does to its rows since changes nothing", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "update", { where: "id IN (8, 9)", values: { v: "f" } });
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("main", "delete", { where: "id IN (8, 9)" });
  assert.ok((await merge(g, "main", "f rows=dest-wins")).notes.some((n) => n.includes("escalated")));
  const all = [...without(TWENTY, 8, 9), ...rows(100, 2, "f")];
  await checkTip(g, "main", all);
  await g.op("f", "delete", { where: "id = 9" });
  await g.op("f", "delete", { where: "id = 1" });
  await merge(g, "main", "f");
  await checkTip(g, "main", without(all, 1));
  await g.op("f", "update", { where: "id = 8", values: { v: "again" } });
  await mergeFails(g, "main", "f", "ECANCELED", "conflict"); // deleted here, updated there
  await checkThenUnmount(g, { main: without(all, 1) });
});

onEach("a strategy leaves units alone that are in no conflict", async (t, engine) => {
  const g = withOps(await mounted(t, "delete_vs_update", engine));
  const both = changed(MAIN, 70, { v: "branch" });
  await g.op("main", "fork", { name: "dest", from: "main" });
  await merge(g, "main", "u_o strategy=source-wins");
  await merge(g, "dest", "u_o strategy=dest-wins");
  await checkThenUnmount(g, { main: both, dest: both });
});

onEach("a pick takes a strategy too", async (t, engine) => {
  const g = withOps(await mounted(t, "delete_vs_update", engine));
  await pick(g, "main", `u_d@${tip(g.storage("u_d"))} rows=source-wins`);
  const all = changed(changed(BASE, 12, { v: "main" }), 40, { v: "branch" });
  await checkThenUnmount(g, { main: all });
});

onEach("words that are no strategy are EINVAL and change nothing", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f");
  await g.op("f", "delete", { where: "id = 1" });
  for (const words of ["strategy=theirs", "rows=", "schema=winner", "row=source-wins", "strategy=Source-Wins"])
    await mergeFails(g, "main", `f ${words}`, "EINVAL");
  await checkThenUnmount(g, { main: TWENTY });
});

onEach("C39 drop_vs_edit drop: the side that dropped the column may win, the other one cannot", async (t, engine) => {
  const g = withOps(await mounted(t, "drop_vs_edit", engine));
  const dropped = TWENTY.map(({ v, ...r }) => r);
  await g.op("main", "fork", { name: "copy", from: "main" });
  await mergeFails(g, "main", "drop schema=dest-wins", "ECANCELED", "conflict");
  await mergeFails(g, "drop", "main schema=source-wins", "ECANCELED", "conflict");
  await merge(g, "copy", "drop schema=source-wins");
  await merge(g, "drop", "main@2 schema=dest-wins");
  await checkThenUnmount(g, { copy: dropped, drop: dropped });
});

// To let x's update win, main's has to be taken back as a whole, and a merge had brought that one from f: the fragment that
// it emptied is f's own, and main never held it.
for (const mode of ["graft", "link", "copy"])
  onEach(`an update that a merge brought gives way to another, or nothing is done (mode=${mode})`, async (t, engine) => {
    const g = await scratch(t, engine, rows(0, 5), rows(5, 5));
    await g.fork("f");
    await g.op("f", "add", { rows: rows(100, 2, "f") });
    await g.op("f", "fork", { name: "x", from: "f" });
    await g.op("f", "update", { where: "id >= 100", values: { v: "f's" } });
    await g.op("f", "add", { rows: rows(200, 1, "f") });
    await merge(g, "main", `f mode=${mode}`, "fast-forward");
    await g.op("x", "update", { where: "id = 100", values: { v: "x's" } });
    const all = [...rows(0, 10), ...changed(rows(100, 2, "f"), 100, { v: "x's" }), ...rows(200, 1, "f")];
    const done = await mergesOrRefuses(g, "main", `x mode=${mode} strategy=source-wins`, all);
    await checkThenUnmount(g, { main: done === "merged" ? all : [...rows(0, 10), ...changed(rows(100, 2, "f"), [100, 101], { v: "f's" }), ...rows(200, 1, "f")] });
  });
