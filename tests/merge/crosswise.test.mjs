// SPDX-License-Identifier: Apache-2.0
// Crosswise merges: both sides merged each other, or both merged a third one. Several best common ancestors; each edit
// once, whatever the order.
import assert from "node:assert/strict";
import { tip } from "../interop/manifest.mjs";
import { changed, plus, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mounted, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, scratch, withOps } from "../harness/verbs.mjs";

const TEN = rows(0, 10),
  TWENTY = rows(0, 20);
const SAME = ["up-to-date", "empty-merge", "fast-forward", "merged"];

onEach("C38 siblings: s and t merge each other by old tips, then each other again", async (t, engine) => {
  const g = withOps(await mounted(t, "siblings", engine));
  const s = tip(g.storage("s")),
    u = tip(g.storage("t"));
  await merge(g, "s", `t@${u}`);
  await merge(g, "t", `s@${s}`);
  await g.op("s", "add", { rows: rows(60, 1) });
  await g.op("t", "add", { rows: rows(61, 1) });
  await g.op("t", "delete", { where: "id = 2" }); // what s had updated
  const edits = without(changed(changed(TEN, 2, { v: "s" }), 3, { v: "t" }), 2),
    all = [...edits, ...rows(60, 1), ...rows(61, 1)];
  await merge(g, "s", "t");
  await checkTip(g, "s", all);
  await merge(g, "t", "s", ["fast-forward", "merged"]);
  await checkTip(g, "t", all);
  await merge(g, "main", "del", "fast-forward");
  await merge(g, "t", "del");
  await merge(g, "s", "main");
  const last = without(all, 5);
  await checkTip(g, "s", last);
  await merge(g, "s", "t", SAME);
  await merge(g, "t", "s", SAME);
  await checkThenUnmount(g, { s: last, t: last, main: without(TEN, 5) });
});

onEach("both merged a third: its commits count once, its later ones too", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "h", "third");
  await g.op("third", "add", { rows: rows(100, 2, "t") });
  await g.op("third", "delete", { where: "id = 9" });
  await g.op("f", "update", { where: "id = 1", values: { v: "f" } });
  await g.op("h", "update", { where: "id = 11", values: { v: "h" } });
  await merge(g, "f", "third");
  await merge(g, "h", "third");
  await g.op("f", "delete", { where: "id = 100" });
  await g.op("h", "update", { where: "id = 101", values: { v: "h" } });
  const both = [
    ...changed(changed(without(TWENTY, 9), 1, { v: "f" }), 11, { v: "h" }),
    ...changed(rows(101, 1, "t"), 101, { v: "h" }),
  ];
  await merge(g, "f", "h");
  await checkTip(g, "f", both);
  await g.op("third", "add", { rows: rows(110, 1, "t") });
  await merge(g, "h", "f", "fast-forward");
  await merge(g, "h", "third");
  await merge(g, "f", "h", "fast-forward");
  const all = [...both, ...rows(110, 1, "t")];
  await merge(g, "main", "f", "fast-forward");
  for (const branch of ["h", "third"]) await merge(g, "main", branch, "up-to-date");
  await checkThenUnmount(g, { main: all, f: all, h: all });
});

onEach("both merged two others, in opposite orders", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "h", "x", "y");
  await g.op("x", "add", { rows: rows(100, 2, "x") });
  await g.op("x", "delete", { where: "id = 1" });
  await g.op("y", "add", { rows: rows(110, 2, "y") });
  await g.op("y", "update", { where: "id = 12", values: { v: "y" } });
  await g.op("f", "delete", { where: "id = 3" });
  await g.op("h", "delete", { where: "id = 14" });
  await merge(g, "f", "x");
  await merge(g, "h", "y");
  await merge(g, "f", "y");
  await merge(g, "h", "x");
  await g.op("f", "delete", { where: "id = 110" });
  const all = without(
    [...changed(TWENTY, 12, { v: "y" }), ...rows(100, 2, "x"), ...rows(110, 2, "y")],
    [1, 3, 14, 110],
  );
  await merge(g, "f", "h");
  await checkTip(g, "f", all);
  await merge(g, "h", "f", "fast-forward");
  await checkThenUnmount(g, { f: all, h: all });
});

// main adds column a, f column b, and each merges the other's tip of that moment.
async function crossed(t, engine) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("main", "addColumn", { name: "a", sql: "n + 1" });
  await g.op("f", "addColumn", { name: "b", sql: "n * 2" });
  const main = tip(g.ds),
    f = tip(g.storage("f"));
  await merge(g, "main", `f@${f}`);
  await merge(g, "f", `main@${main}`);
  return g;
}

onEach("crosswise with columns: each column once, ids that differ on both sides", async (t, engine) => {
  const g = await crossed(t, engine);
  await g.op("main", "delete", { where: "id = 1" });
  await g.op("f", "update", { where: "id = 12", values: { a: 0 } });
  const all = changed(plus(without(TWENTY, 1), (r) => ({ a: r.n + 1, b: r.n * 2 })), 12, { a: 0 });
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("crosswise with columns, all of it compacted on both sides since: each column is still one", async (t, engine) => {
  const g = await crossed(t, engine);
  for (const branch of ["main", "f"]) await g.op(branch, "optimize");
  await g.op("main", "alter", { path: "b", rename: "bee" });
  await g.op("main", "add", { rows: plus(rows(100, 2, "m"), (r) => ({ a: r.n + 1, bee: r.n * 2 })) });
  await g.op("f", "add", { rows: plus(rows(200, 2, "f"), (r) => ({ a: r.n + 1, b: r.n * 2 })) });
  const all = plus([...TWENTY, ...rows(100, 2, "m"), ...rows(200, 2, "f")], (r) => ({ a: r.n + 1, bee: r.n * 2 }));
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("a column that picks brought to both is one, also where no data is left in common; two of one look are two", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10));
  await g.fork("x", "f", "h");
  await g.op("x", "addColumn", { name: "c", sql: "n + 1" });
  await g.op("h", "addColumn", { name: "c", sql: "n + 1" });
  for (const branch of ["main", "f"]) await pick(g, branch, "x@2");
  for (const [branch, from] of [
    ["main", 100],
    ["f", 200],
    ["h", 300],
  ]) {
    await g.op(branch, "delete", { where: "id >= 0" });
    await g.op(branch, "add", { rows: plus(rows(from, 2, branch), () => ({ c: from })) });
  }
  const all = [...plus(rows(100, 2, "main"), () => ({ c: 100 })), ...plus(rows(200, 2, "f"), () => ({ c: 200 }))];
  await merge(g, "main", "f");
  await checkTip(g, "main", all);
  assert.match((await mergeFails(g, "main", "h", "ECANCELED", "conflict")).text, /column c/);
  await checkThenUnmount(g, { main: all });
});

onEach("a row that both sides changed alike by merging is no conflict; changed apart since, it is", async (t, engine) => {
  const g = withOps(await mounted(t, "siblings", engine));
  const s = tip(g.storage("s")),
    u = tip(g.storage("t"));
  await merge(g, "s", `t@${u}`);
  await merge(g, "t", `s@${s}`);
  const both = changed(changed(TEN, 2, { v: "s" }), 3, { v: "t" });
  await checkTip(g, "s", both);
  await checkTip(g, "t", both);
  await g.op("s", "update", { where: "id = 3", values: { v: "again" } });
  await g.op("t", "update", { where: "id = 3", values: { v: "anew" } });
  for (const [target, source] of [
    ["s", "t"],
    ["t", "s"],
  ])
    await mergeFails(g, target, source, "ECANCELED", "conflict");
  await checkThenUnmount(g, { s: changed(both, 3, { v: "again" }), t: changed(both, 3, { v: "anew" }) });
});

onEach("merge bases that do not go together: a refusal or a conflict, never a choice nobody made", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f", "x", "y");
  await g.op("x", "update", { where: "id = 1", values: { v: "x" } });
  await g.op("y", "update", { where: "id = 1", values: { v: "y" } });
  await merge(g, "f", "x", "fast-forward");
  await merge(g, "main", "y", "fast-forward");
  const a = await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  assert.match(a.text, /unit: "?row 1 of fragment 0/);
  await checkThenUnmount(g, { main: changed(TWENTY, 1, { v: "y" }), f: changed(TWENTY, 1, { v: "x" }) });
});

onEach("a ring of three branches that merge each other in turn comes to rest", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "h");
  await g.op("main", "delete", { where: "id = 1" });
  await g.op("f", "update", { where: "id = 2", values: { v: "f" } });
  await g.op("h", "add", { rows: rows(100, 2, "h") });
  await pick(g, "f", "h@3");
  const all = [...changed(without(TWENTY, 1), 2, { v: "f" }), ...rows(100, 2, "h")];
  for (const [target, source] of [
    ["f", "main"],
    ["h", "f"],
    ["main", "h"],
  ])
    await merge(g, target, source, ["merged", "fast-forward"]);
  for (let round = 0; round < 2; round++)
    for (const [target, source] of [
      ["f", "main"],
      ["h", "f"],
      ["main", "h"],
    ])
      await merge(g, target, source, ["up-to-date", "fast-forward", "empty-merge"]);
  for (const [target, source] of [
    ["f", "main"],
    ["h", "f"],
    ["main", "h"],
  ])
    await merge(g, target, source, "up-to-date");
  await checkThenUnmount(g, { main: all, f: all, h: all });
});

onEach("C56 more versions do not make a side the newer one", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10));
  await g.fork("long");
  for (let i = 0; i < 8; i++) await g.op("long", "add", { rows: rows(100 + i, 1, "l") });
  await g.op("main", "update", { where: "id = 1", values: { v: "main" } });
  await merge(g, "long", "main");
  await g.op("main", "add", { rows: rows(900, 1, "m") });
  await merge(g, "main", "long");
  const all = [...changed(TEN, 1, { v: "main" }), ...rows(100, 8, "l"), ...rows(900, 1, "m")];
  await merge(g, "long", "main", "fast-forward");
  await merge(g, "main", "long", "up-to-date");
  await checkThenUnmount(g, { main: all, long: all });
});
