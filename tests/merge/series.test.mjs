// SPDX-License-Identifier: Apache-2.0
// One command, several versions: replay, a range of picks, several sources. All of it is planned before the first version
// is written, so a conflict anywhere changes nothing; the last version holds what a single merge would.
import assert from "node:assert/strict";
import path from "node:path";
import { load, tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { checkManifest } from "../harness/invariants.mjs";
import { changed, plus, rows, span, without } from "../harness/rows.mjs";
import { startStock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, checkTip, control, mounted, onEach } from "../harness/tip.mjs";
import { branchOfFive, checkColumns, fails, fieldsOf, merge, mergeFails, pick, pickFails, scratch, undo, undoFails, withOps } from "../harness/verbs.mjs";
import { difference, snapshot } from "../harness/workspace.mjs";

const TWENTY = rows(0, 20);
const A = (r) => ({ a: r.n + 1 });
const said = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text}`;

// The command writes exactly `n` versions and says so; `file` is a control file of the target, or a path. Returns the
// answer.
async function makes(g, target, line, n, { file = ".merge", result = "merged" } = {}) {
  const before = tip(g.storage(target)),
    r = await ctl(file.startsWith("/") ? file : control(g, target, file), line);
  assert.equal(r.code, 0, `${line}: ${said(r)}`);
  assert.equal(r.answer.result, result, said(r));
  assert.equal(tip(g.storage(target)), before + n, `versions of ${target}: ${said(r)}`);
  assert.equal(r.answer.target, `${target}@${before}`);
  if (n === 0) return r.answer;
  assert.equal(Number(r.answer.version), before + n, "version: is the last one's");
  assert.equal(r.answer.versions, n === 1 ? `${before + 1}` : `${before + 1}..${before + n}`);
  assert.equal(r.answer.steps.length, n, "a line for each version");
  const m = checkManifest(g.storage(target), target);
  assert.equal(r.answer.transaction, m.transaction.uuid);
  checkColumns(g, target);
  return r.answer;
}
const replays = (g, target, line, n, options) => makes(g, target, `${line} replay`, n, options);
const picks = (g, target, line, n, options) => makes(g, target, line, n, { file: ".cherry-pick", ...options });

// Versions of a branch one by one, as stock reads them: { version: rows }.
async function checkVersions(g, branch, expected) {
  for (const [version, table] of Object.entries(expected)) {
    const name = `look-${branch}-${version}`;
    await g.op("main", "fork", { name, from: branch, version: Number(version) });
    await checkStorage(g, name, table);
    await g.op("main", "drop", { name });
  }
}
const vectorOf = (g, branch = "main") => load(g.storage(branch)).metadata["lancefs.vector"];

const WITHOUT_A = [...changed(without(TWENTY, 5), 12, { v: "up" }), ...rows(100, 3, "f"), ...rows(110, 1, "f")];
const WHOLE = plus(WITHOUT_A, A);

// --- replay

onEach("replay: a version for each commit, and in the end the same table as by a plain merge", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "delete", { where: "id = 1" });
  await g.op("main", "add", { rows: rows(200, 2, "m") });
  await g.op("main", "fork", { name: "twin", from: "main" });
  const mine = (table) => [...without(table, 1), ...rows(200, 2, "m")];
  const all = [...without(WHOLE, 1), ...plus(rows(200, 2, "m"), () => ({ a: null }))];
  await merge(g, "twin", "f");
  const a = await replays(g, "main", "f", 5);
  assert.equal(a.source, "f@7");
  assert.equal(a.base, "main@2");
  assert.match(a.steps[0], /f@3 merged version 5\b.*rows \+3 -0/);
  assert.match(a.steps[4], /f@7 merged version 9\b/);
  assert.equal(a.conflicts, "0");
  await checkTip(g, "main", all);
  await checkTip(g, "twin", all);
  await checkVersions(g, "main", {
    5: mine([...TWENTY, ...rows(100, 3, "f")]),
    6: mine([...without(TWENTY, 5), ...rows(100, 3, "f")]),
    7: mine([...changed(without(TWENTY, 5), 12, { v: "up" }), ...rows(100, 3, "f")]),
    8: mine(WITHOUT_A),
  });
  assert.match(vectorOf(g), new RegExp(/[0-9a-f]{32}:7/.source), "the whole of f is held");
  await merge(g, "main", "f", "up-to-date");
  await replays(g, "main", "f", 0, { result: "up-to-date" });
  await merge(g, "twin", "main", ["merged", "empty-merge"]);
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  await g.op("f", "update", { where: "id IN (100, 2)", values: { v: "later" } });
  await merge(g, "main", "f", ["fast-forward", "merged"]);
  const later = changed(all, [100, 2], { v: "later" });
  await checkThenUnmount(g, { main: later, f: later, twin: all });
});

onEach("replay where a fast-forward would do: still one version for each commit", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  const a = await replays(g, "main", "f ff=only", 5, { result: "fast-forward" });
  assert.equal(a.rows, "+5 -2");
  await checkVersions(g, "main", { 3: [...TWENTY, ...rows(100, 3, "f")], 6: WITHOUT_A });
  await merge(g, "main", "f", "up-to-date");
  await g.op("main", "add", { rows: plus(rows(300, 1), A) });
  await merge(g, "f", "main", ["fast-forward", "merged"]);
  const all = [...WHOLE, ...plus(rows(300, 1), A)];
  await checkThenUnmount(g, { main: all, f: all });
});

onEach("replay stops before the first version when the third commit clashes, and names it", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "update", { where: "id = 12", values: { v: "mine" } });
  const mine = changed(TWENTY, 12, { v: "mine" });
  for (const line of ["f replay", "f replay dry-run", "replay f rows=fail strategy=source-wins"]) {
    const a = await mergeFails(g, "main", line, "ECANCELED", "conflict");
    assert.equal(a.step, "f@5, 3 of 5");
    assert.equal(a.source, "f@5");
    assert.match(a.text, /unit: "?row 2 of fragment/);
    assert.doesNotMatch(a.text, /^version/m);
  }
  await checkTip(g, "main", mine);
  await replays(g, "main", "f@4", 2);
  await replays(g, "main", "f rows=source-wins", 3);
  await checkTip(g, "main", WHOLE);
  await merge(g, "main", "f", "up-to-date");
  await checkThenUnmount(g, { main: WHOLE, f: WHOLE });
});

onEach("replay with dest-wins: the target's row stays, everything else comes", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "update", { where: "id = 12", values: { v: "mine" } });
  const a = await replays(g, "main", "f@6 strategy=dest-wins", 3);
  assert.match(a.notes.join("\n"), /f@5 is skipped, it changes nothing here/);
  await merge(g, "main", "f@6", "up-to-date");
  await checkThenUnmount(g, { main: changed(WITHOUT_A, 12, { v: "mine" }) });
});

onEach("replay skips what was picked before and says so", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@4");
  await pick(g, "main", "f@6");
  const a = await replays(g, "main", "f", 3);
  assert.equal(a.notes.filter((n) => /^f@[46] is skipped, it changes nothing here$/.test(n)).length, 2, a.text);
  assert.match(a.steps.join(), /f@3.*f@5.*f@7/);
  await checkTip(g, "main", WHOLE);
  await merge(g, "main", "f", "up-to-date");
  await merge(g, "f", "main", ["fast-forward", "merged", "empty-merge", "up-to-date"]);
  await checkThenUnmount(g, { main: WHOLE, f: WHOLE });
});

onEach("replay: when the newest commits change nothing, the lineage is recorded all the same", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "delete", { where: "id = 5" });
  const a = await replays(g, "main", "f@4", 2); // f@3, and f@4 which brings nothing
  assert.match(a.steps[1], /f@4 empty-merge/);
  await checkTip(g, "main", [...without(TWENTY, 5), ...rows(100, 3, "f")]);
  await merge(g, "main", "f@4", "up-to-date");
  await replays(g, "main", "f", 3);
  await checkThenUnmount(g, { main: WHOLE });
});

onEach("replay of a branch that merged the target, and of one that merged a third branch", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.fork("h", "k");
  await g.op("h", "add", { rows: rows(300, 2, "h") }); // h@3
  await g.op("main", "update", { where: "id = 7", values: { v: "mine" } }); // main@3
  await merge(g, "h", "main"); // h@4
  await merge(g, "h", "f rows=dest-wins"); // h@5
  await g.op("h", "delete", { where: "id IN (8, 101)" }); // h@6
  await g.op("h", "update", { where: "id = 7", values: { v: "again" } }); // h@7
  await g.op("main", "delete", { where: "id = 0" }); // main@4
  // Row 7 was updated on a side that had no column a.
  const merged = without([...changed(WHOLE, 7, { v: "again", a: null }), ...plus(rows(300, 2, "h"), () => ({ a: null }))], 8, 101);
  await checkTip(g, "h", merged);
  await g.op("main", "fork", { name: "twin", from: "main" });
  await merge(g, "twin", "h");
  const all = without(merged, 0);
  await checkTip(g, "twin", all);
  const a = await replays(g, "main", "h", 4);
  assert.match(a.notes.join("\n"), /h@4 is skipped, it changes nothing here/, "main's own commits came with that merge");
  await checkTip(g, "main", all);
  await merge(g, "main", "f", "up-to-date");
  await replays(g, "k", "h", 5, { result: "fast-forward" }); // k lacks what h merged, too
  await checkThenUnmount(g, { main: all, k: merged, twin: all });
});

onEach("replay of a branch of a branch of a branch: the commits of each line, in order", async (t, engine) => {
  const g = withOps(await mounted(t, "chain", engine));
  const main = [...rows(0, 10), ...rows(10, 1, "m")],
    feature = [...without(rows(0, 10), 1), ...rows(100, 2, "f")],
    deep = [...without([...without(feature, 100), ...rows(200, 2, "s")], 6), ...rows(300, 2, "d")];
  await g.op("main", "fork", { name: "twin", from: "main" });
  await merge(g, "twin", "exp/sub/deep");
  const before = tip(g.ds),
    r = await ctl(control(g, "main"), "exp/sub/deep replay");
  assert.equal(r.code, 0, said(r));
  const lines = r.answer.steps.map((s) => s.split("@")[0]);
  assert.deepEqual([...new Set(lines)], ["feature", "exp/sub", "exp/sub/deep"]);
  assert.equal(tip(g.ds), before + lines.length);
  const all = [...deep, ...rows(10, 1, "m")];
  assert.equal(main.length, 11);
  await checkTip(g, "main", all);
  for (const held of ["feature", "exp/sub", "exp/sub/deep"]) await merge(g, "main", held, "up-to-date");
  await checkThenUnmount(g, { main: all, twin: all });
});

onEach("replay by link and by copy: stock may delete the source", async (t, engine) => {
  for (const mode of ["link", "copy", "graft"]) {
    const g = await branchOfFive(t, engine);
    await g.op("main", "delete", { where: "id = 1" });
    await replays(g, "main", `f mode=${mode}`, 5);
    await g.op("main", "drop", { name: "f" });
    await g.op("main", "update", { where: "id = 100", values: { v: "later" } });
    await checkThenUnmount(g, { main: changed(without(WHOLE, 1), 100, { v: "later" }) });
  }
});

onEach("replay over a compaction on the source, and onto a compacted target", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "h");
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "optimize");
  await g.op("f", "delete", { where: "id = 6" });
  await g.op("main", "delete", { where: "id = 7" });
  const all = without(TWENTY, 5, 6, 7);
  await g.op("main", "fork", { name: "twin", from: "main" });
  await merge(g, "twin", "f");
  const r = await ctl(control(g, "main"), "f replay");
  if (r.code === 0) await checkTip(g, "main", all);
  else assert.ok(["ECANCELED", "EOPNOTSUPP"].includes(r.errno), said(r));
  await g.op("h", "optimize");
  await merge(g, "h", "f@3", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { twin: all, h: without(TWENTY, 5) });
});

onEach("replay with stable row ids: no id twice, whatever stock does next", async (t, engine) => {
  const g = withOps(await mounted(t, "stable_row_ids", engine));
  const main = [...changed(rows(0, 10), 5, { v: "mm" }), ...rows(200, 4, "m")];
  const all = [...without(changed(main, 2, { v: "ff" }), 9), ...rows(100, 3, "f")];
  const first = Number(/:(\d+)$/.exec(`x:${tip(g.storage("feature"))}`)[1]);
  const r = await ctl(control(g, "main"), "feature replay");
  assert.equal(r.code, 0, said(r));
  assert.match(r.answer.steps.at(-1), new RegExp(`^feature@${first} `));
  await checkTip(g, "main", all);
  await g.op("main", "update", { where: "id IN (3, 100)", values: { v: "later" } });
  await g.op("main", "index", { column: "id" });
  await g.op("main", "optimize");
  await checkThenUnmount(g, { main: changed(all, [3, 100], { v: "later" }) });
});

onEach("replay of a branch whose early versions stock compacted and cleaned away is refused, a plain merge goes", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("f", "clean");
  const a = await mergeFails(g, "main", "f replay", ["ENODATA", "EOPNOTSUPP"], ["error", "refused"]);
  assert.match(a.text, /without replay/);
  await merge(g, "main", "f", ["fast-forward", "merged"]);
  await checkThenUnmount(g, { main: WHOLE });
});

// --- picks

onEach("a range without squash: a version for each commit, in order", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "add", { rows: rows(200, 2, "m") });
  const a = await picks(g, "main", "f@3..6", 4);
  assert.equal(a.source, "f@3..6");
  assert.equal(a.rows, "+5 -2");
  const mine = (table) => [...table, ...rows(200, 2, "m")];
  await checkVersions(g, "main", {
    4: mine([...TWENTY, ...rows(100, 3, "f")]),
    5: mine([...without(TWENTY, 5), ...rows(100, 3, "f")]),
  });
  await checkTip(g, "main", mine(WITHOUT_A));
  const again = await picks(g, "main", "f@3..f@6", 0, { result: "up-to-date" });
  assert.equal(again.notes.length, 4);
  assert.match(again.notes[0], /f@3 is skipped, it is held already/);
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: [...WHOLE, ...plus(rows(200, 2, "m"), () => ({ a: null }))] });
});

onEach("a range of which parts are there: the rest is picked; a part that changes nothing is skipped", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await pick(g, "main", "f@5");
  await g.op("main", "delete", { where: "id = 5" }); // what f@4 does
  const a = await picks(g, "main", "f@3..6", 2);
  assert.deepEqual(
    a.notes.filter((n) => /skipped/.test(n)),
    ["f@4 is skipped, it changes nothing here", "f@5 is skipped, it is held already"],
  );
  await checkTip(g, "main", WITHOUT_A);
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: WHOLE });
});

onEach("a range that clashes in its third commit changes nothing, as a dry run says before", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "update", { where: "id = 12", values: { v: "mine" } });
  for (const line of ["f@3..6", "f@3..6 dry-run"]) {
    const a = await pickFails(g, "main", line, "ECANCELED", "conflict");
    assert.equal(a.step, "f@5, 3 of 4");
  }
  await picks(g, "main", "f@3..4", 2);
  await picks(g, "main", "f@5..6 strategy=source-wins", 2);
  await checkThenUnmount(g, { main: WITHOUT_A });
});

onEach("C40 net_zero: commits that cancel out or are there already leave no empty version", async (t, engine) => {
  const g = withOps(await mounted(t, "net_zero", engine));
  const nine = without(rows(0, 10), 5);
  await checkTip(g, "main", nine);
  const before = tip(g.ds);
  const r = await ctl(control(g, "main"), "twice replay");
  assert.equal(r.code, 0, said(r));
  await checkTip(g, "main", nine);
  const now = tip(g.ds);
  assert.ok(now <= before + 1, "one version at most, for the lineage");
  for (const line of ["twice replay", "twice", "none replay"]) {
    const again = await ctl(control(g, "main"), line);
    assert.equal(again.code, 0, said(again));
  }
  assert.ok(tip(g.ds) <= now + 1);
  const addel = await ctl(control(g, "main"), "addel replay");
  assert.equal(addel.code, 0, said(addel));
  await checkThenUnmount(g, { main: nine });
});

onEach("C40 add_columns: score merged, replayed, or picked as a range gives the same table", async (t, engine) => {
  const g = withOps(await mounted(t, "add_columns", engine));
  const all = [
    ...plus(without(rows(0, 100), 60), (r) => ({ label: `L${r.v}`, score: r.n * 2 })),
    { id: 900, v: "s", n: 1, label: null, score: 5 },
  ];
  for (const name of ["twin", "third"]) await g.op("main", "fork", { name, from: "main" });
  await merge(g, "twin", "score");
  await replays(g, "third", "score", 2);
  await picks(g, "main", "score@3..4", 2);
  await checkThenUnmount(g, { main: all, twin: all, third: all });
});

// --- several sources

// b0, b1, b2: each deletes a row of its own and row 19, and appends one.
async function fan(t, engine) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("b0", "b1", "b2");
  for (const i of [0, 1, 2]) {
    await g.op(`b${i}`, "delete", { where: `id IN (${i}, 19)` });
    await g.op(`b${i}`, "add", { rows: rows(100 + i, 1, "b") });
  }
  return g;
}
const FAN = [...without(TWENTY, 0, 1, 2, 19), ...rows(100, 3, "b")];

onEach("several sources: one version for each, rows of all of them, a row that all deleted", async (t, engine) => {
  const g = await fan(t, engine);
  await g.op("main", "add", { rows: rows(200, 1, "m") });
  const a = await makes(g, "main", "b0 b1 b2", 3);
  assert.equal(a.source, "b0@4, b1@4, b2@4");
  const all = [...FAN, ...rows(200, 1, "m")];
  await checkVersions(g, "main", { 4: [...without(TWENTY, 0, 19), ...rows(100, 1, "b"), ...rows(200, 1, "m")] });
  for (const b of ["b0", "b1", "b2"]) await merge(g, "main", b, "up-to-date");
  await checkThenUnmount(g, { main: all });
});

onEach("several sources through MNT/.merge, the target last; one that is held is skipped, one given twice too", async (t, engine) => {
  const g = await fan(t, engine);
  const file = path.join(g.m.mnt, ".merge");
  await merge(g, "main", "b1", "fast-forward");
  const a = await makes(g, "main", "b0 b1 b2 b0 main", 2, { file });
  assert.deepEqual(
    a.notes.filter((n) => /skipped/.test(n)),
    ["b1@4 is skipped, it is held already", "b0@4 is skipped, it is held already"],
  );
  await makes(g, "main", "b0 b2 main main", 0, { file, result: "up-to-date" });
  await checkThenUnmount(g, { main: FAN });
});

onEach("several sources with replay: a version for each commit of each", async (t, engine) => {
  const g = await fan(t, engine);
  await merge(g, "b1", "b0"); // b1@5 holds b0
  await replays(g, "main", "b0 b1", 5); // b1@5, the merge, changes nothing here but the lineage
  await checkThenUnmount(g, { main: [...without(TWENTY, 0, 1, 19), ...rows(100, 2, "b")] });
});

onEach("several sources: two of them clash with each other, so nothing is written, and the second one is named", async (t, engine) => {
  const g = await fan(t, engine);
  await g.op("b2", "update", { where: "id = 0", values: { v: "b2" } }); // b0 deleted it
  const a = await mergeFails(g, "main", "b0 b1 b2", "ECANCELED", "conflict");
  assert.equal(a.step, "b2@5, 3 of 3");
  assert.match(a.text, /row 0 of fragment 0/);
  await mergeFails(g, "main", "b0 b2 dry-run", "ECANCELED", "conflict");
  await mergeFails(g, "main", "b0 nosuch b1", "ENOENT", "error");
  await mergeFails(g, "main", "b0 b1@99", "ENOENT", "error");
  await checkTip(g, "main", TWENTY);
  await makes(g, "main", "b0 b1 b2 rows=dest-wins", 3);
  await checkThenUnmount(g, { main: FAN });
});

// --- what goes for all of them

const LINES = [
  [".merge", "f replay", "f@7", 5, WHOLE],
  [".cherry-pick", "f@3..6", "f@3..6", 4, WITHOUT_A],
  [".merge", "f@4 f@6 f", "f@4, f@6, f@7", 3, WHOLE],
];
for (const [file, line, source, n, all] of LINES)
  onEach(`${file} ${line}: dry-run tells what will come and writes nothing; expect= holds for the first`, async (t, engine) => {
    const g = await branchOfFive(t, engine);
    await g.op("main", "delete", { where: "id = 1" });
    const before = snapshot(g.root),
      dry = await ctl(control(g, "main", file), `${line} dry-run`);
    assert.equal(dry.code, 0, said(dry));
    assert.deepEqual(difference(before, snapshot(g.root)), []);
    assert.equal(dry.answer.result, "dry-run");
    assert.equal(dry.answer["would-be"], "merged");
    assert.equal(dry.answer.steps.length, n);
    await fails(g, file, "main", `${line} expect=2`, "ESTALE", "error");
    await fails(g, file, "main", `${line} expect=4`, "ESTALE", "error");
    const real = await makes(g, "main", `${line} expect=3 message="in parts" property.k=v`, n, { file });
    for (const key of ["source", "target", "base", "fragments", "rows", "conflicts"])
      assert.equal(dry.answer[key], real[key], key);
    assert.equal(real.source, source);
    for (const v of span(4, 3 + n)) {
      const p = load(g.ds, v).transaction.properties;
      assert.equal(p.__lance_commit_message, "in parts");
      assert.equal(p.k, "v");
      assert.match(p["lancefs.source"], /^f@\d$/);
    }
    await checkThenUnmount(g, { main: without(all, 1) });
  });

onEach("undo after replay and after several sources: each version is a step", async (t, engine) => {
  const g = await branchOfFive(t, engine);
  await g.op("main", "delete", { where: "id = 1" });
  const own = without(TWENTY, 1),
    before = vectorOf(g);
  await replays(g, "main", "f", 5);
  await undoFails(g, "main", "steps=6", "ENOENT");
  await undo(g, "main", "steps=1");
  await checkTip(g, "main", without(WITHOUT_A, 1));
  await undo(g, "main", "steps=4");
  await checkTip(g, "main", own);
  assert.notEqual(vectorOf(g), before, "main's own number has grown");
  await replays(g, "main", "f", 5);
  await checkTip(g, "main", without(WHOLE, 1));
  await undo(g, "main", "steps=5");
  await checkTip(g, "main", own);
  await makes(g, "main", "f@4 f", 2);
  await undo(g, "main", "steps=2");
  await checkTip(g, "main", own);
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: without(WHOLE, 1) });
});

onEach("a replay while stock writes to the target: nobody's rows are lost, no version is missing", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  for (const i of span(0, 11)) await g.op("f", "add", { rows: rows(100 + i, 1, "f") });
  const client = startStock(engine);
  let going = true,
    ready,
    acked = [];
  const begun = new Promise((done) => (ready = done));
  const writing = (async () => {
    for (let id = 1000; going; id++) {
      await client.op(g.ds, "main", "add", { rows: rows(id, 1, "w") });
      acked.push(id);
      ready();
    }
  })();
  await begun;
  const a = await ctl(control(g, "main"), "f replay");
  going = false;
  await writing;
  client.stop();
  assert.equal(a.code, 0, said(a));
  assert.equal(a.answer.steps.length, 12);
  const numbers = a.answer.versions.split(", ").flatMap((r) => {
    const [from, to = from] = r.split("..").map(Number);
    return span(from, to);
  });
  assert.equal(numbers.length, 12);
  for (const v of numbers) assert.equal(load(g.ds, v).transaction.properties["lancefs.op"], "merge", `version ${v} is ours`);
  t.diagnostic(`${acked.length} appends, versions ${a.answer.versions}`);
  await checkThenUnmount(g, { main: [...TWENTY, ...rows(100, 12, "f"), ...acked.flatMap((id) => rows(id, 1, "w"))] });
});

// --- C32, C34

onEach("C32 chain: a fast-forward goes to the version named, an ancestor is nothing new, a diverged one is refused", async (t, engine) => {
  for (const replay of ["", " replay"]) {
    const g = withOps(await mounted(t, "chain", engine));
    await g.op("main", "fork", { name: "q", from: "feature" });
    const feature = [...without(rows(0, 10), 1), ...rows(100, 2, "f")],
      at = tip(g.storage("feature"));
    await g.op("feature", "add", { rows: rows(600, 1) });
    await g.op("feature", "add", { rows: rows(601, 1) });
    const ff = { result: "fast-forward" };
    if (replay) await replays(g, "q", `feature@${at + 1} ff=only`, 1, ff);
    else await merge(g, "q", `feature@${at + 1} ff=only`, "fast-forward");
    await checkTip(g, "q", [...feature, ...rows(600, 1)]);
    await merge(g, "q", `feature@${at} ff=only${replay}`, "up-to-date");
    await mergeFails(g, "q", `feature@99 ff=only${replay}`, "ENOENT", "error");
    await mergeFails(g, "main", `feature ff=only${replay}`, "ECANCELED", "conflict");
    const acked = [];
    const client = startStock(engine);
    let ended = false;
    const writing = (async () => {
      for (const id of span(700, 704)) {
        await client.op(g.ds, "q", "add", { rows: rows(id, 1, "w") });
        acked.push(id);
      }
      ended = true;
    })();
    const results = [];
    while (!ended) results.push(await ctl(control(g, "q"), `feature ff=only${replay}`));
    await writing;
    client.stop();
    const taken = results.some((r) => r.answer.result === "fast-forward");
    for (const r of results) assert.ok(r.code === 0 || r.errno === "ECANCELED", said(r));
    await checkThenUnmount(g, {
      q: [...feature, ...rows(600, 1), ...(taken ? rows(601, 1) : []), ...acked.flatMap((id) => rows(id, 1, "w"))],
    });
  }
});

onEach("C34 chain: a branch that has children is merged into, by fast-forward and by replay; the children stay readable", async (t, engine) => {
  const g = withOps(await mounted(t, "chain", engine));
  const feature = [...without(rows(0, 10), 1), ...rows(100, 2, "f")],
    sub = [...without(feature, 100), ...rows(200, 2, "s")],
    deep = [...without(sub, 6), ...rows(300, 2, "d")],
    children = { "exp/sub": sub, "exp/sub/deep": deep };
  await merge(g, "feature", "main");
  const grown = [...feature, ...rows(10, 1, "m")];
  for (const [name, table] of Object.entries({ ...children, idle: feature, feature: grown })) await checkTip(g, name, table);
  await merge(g, "idle", "feature ff=only", "fast-forward");
  const r = await ctl(control(g, "feature"), "exp/sub replay");
  assert.equal(r.code, 0, said(r));
  await checkThenUnmount(g, {
    ...children,
    idle: grown,
    feature: [...sub, ...rows(10, 1, "m")],
    main: [...rows(0, 10), ...rows(10, 1, "m")],
  });
});

// --- by the schema

onEach("replay of renamed, dropped and added columns equals the plain merge", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "alter", { path: "v", rename: "text" });
  await g.op("f", "addColumn", { name: "b", sql: "n * 2" });
  await g.op("f", "dropColumns", { names: ["n"] });
  await g.op("f", "add", { rows: [{ id: 100, text: "f", b: 7 }] });
  await g.op("main", "addColumn", { name: "c", sql: "id + 1" });
  await g.op("main", "delete", { where: "id = 3" });
  await g.op("main", "fork", { name: "twin", from: "main" });
  await merge(g, "twin", "f");
  await replays(g, "main", "f", 4);
  const all = [
    ...without(TWENTY, 3).map(({ id, v, n }) => ({ id, text: v, c: id + 1, b: n * 2 })),
    { id: 100, text: "f", c: null, b: 7 },
  ];
  assert.deepEqual(fieldsOf(g).map((f) => f[0]).sort(), fieldsOf(g, "twin").map((f) => f[0]).sort());
  await checkThenUnmount(g, { main: all, twin: all });
});
