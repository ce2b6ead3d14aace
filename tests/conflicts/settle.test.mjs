// SPDX-License-Identifier: Apache-2.0
// Conflicts settled one by one: mixed choices, rows as data sets, tips that move meanwhile, two shells, abort, unmount, picks,
// reverts and series.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { configure } from "../interop/configure.mjs";
import { load } from "../interop/manifest.mjs";
import { aborts, checkRows, choose, chooses, conflict, conflicts, conflictsDir, continues, doesNotContinue, numbers, stopsOn } from "../harness/conflicts.mjs";
import { ctl, ctlThrough } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { sh } from "../harness/proc.mjs";
import { checkSizes } from "../harness/reports.mjs";
import { changed, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, control, mounted, onEach } from "../harness/tip.mjs";
import { merge, scratch, withOps } from "../harness/verbs.mjs";
import { difference, snapshot } from "../harness/workspace.mjs";

const TWENTY = rows(0, 20);
const config = (g, branch = "main") => load(g.storage(branch)).config;
const update = (g, branch, id, v) => g.op(branch, "update", { where: `id = ${id}`, values: { v } });

// main and f: rows 3, 5 and 7 updated on both sides, each by a commit of its own; 9 deleted here and updated there; the key k.
async function clashing(t, engine) {
  const g = await scratch(t, engine, TWENTY);
  configure(g.ds, { config: { k: "0" } });
  await g.fork("f");
  for (const id of [3, 5, 7]) {
    await update(g, "main", id, `m${id}`);
    await update(g, "f", id, `f${id}`);
  }
  await g.op("main", "delete", { where: "id = 9" });
  await update(g, "f", 9, "f9");
  configure(g.ds, { config: { k: "m" } });
  configure(g.storage("f"), { config: { k: "f" } });
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  return g;
}
const MINE = without(["3", "5", "7"].reduce((all, id) => changed(all, Number(id), { v: `m${id}` }), TWENTY), 9);
const at = (list, text) => list.findIndex((c) => c.unit.startsWith(text));
const ROW = (id) => `row ${id} of fragment 0`;

onEach("each conflict its own choice; nothing is written until continue; the rows of each side are data sets", async (t, engine) => {
  const g = await clashing(t, engine);
  assert.deepEqual(numbers(g, "main"), [], "nothing waits, and the directory is there");
  await stopsOn(g, "main", "f", 5);
  const list = conflicts(g, "main"),
    k = Object.fromEntries([ROW(3), ROW(5), ROW(7), ROW(9), "config key k"].map((u) => [u, at(list, u)]));
  assert.deepEqual(list[k["config key k"]], { kind: "value", unit: "config key k", base: "0", ours: "m", theirs: "f", choice: "" });
  assert.deepEqual(list[k[ROW(9)]], { kind: "delete-update", unit: ROW(9), base: "live", ours: "deleted", theirs: "updated", choice: "" });
  assert.deepEqual(list[k[ROW(3)]], { kind: "update-update", unit: ROW(3), base: "live", ours: "updated", theirs: "updated", choice: "" });
  const before = snapshot(g.root);
  const r = (id) => rows(id, 1)[0];
  await checkRows(g, "main", k[ROW(3)], "base", [r(3)]);
  await checkRows(g, "main", k[ROW(3)], "ours", [{ ...r(3), v: "m3" }]);
  await checkRows(g, "main", k[ROW(3)], "theirs", [{ ...r(3), v: "f3" }]);
  await checkRows(g, "main", k[ROW(9)], "base", [r(9)]);
  await checkRows(g, "main", k[ROW(9)], "ours", []);
  await checkRows(g, "main", k[ROW(9)], "theirs", [{ ...r(9), v: "f9" }]);
  const names = (n) => fs.readdirSync(path.join(conflictsDir(g, "main"), `${n}`)).sort();
  assert.deepEqual(names(k[ROW(3)]), ["base", "base.lance", "choice", "kind", "ours", "ours.lance", "theirs", "theirs.lance", "unit"]);
  assert.deepEqual(names(k["config key k"]), ["base", "choice", "kind", "ours", "theirs", "unit"]);
  for (const name of ["kind", "unit", "base", "ours", "theirs", "choice"])
    await checkSizes(path.join(conflictsDir(g, "main"), "0", name), path.join(g.w.dir, "copy"));
  assert.ok(!fs.readdirSync(g.m.tree("main")).includes(".conflicts"), "it is not listed: cp -r does not walk into it");

  await doesNotContinue(g, "main");
  await chooses(g, "main", k[ROW(3)], "theirs");
  await chooses(g, "main", k[ROW(5)], "ours");
  await chooses(g, "main", k[ROW(7)], "ours");
  await chooses(g, "main", k[ROW(7)], "theirs"); // another mind
  await chooses(g, "main", k["config key k"], "theirs");
  const a = await doesNotContinue(g, "main");
  assert.equal(a.conflicts, "1", "the one that nobody chose");
  assert.match(a.text, /unit: row 9 of fragment 0/);
  assert.deepEqual(conflicts(g, "main").map((c) => c.choice), list.map((c) => ({ [ROW(3)]: "theirs", [ROW(5)]: "ours", [ROW(7)]: "theirs", "config key k": "theirs" })[c.unit] ?? ""));
  await chooses(g, "main", k[ROW(9)], "ours");
  assert.deepEqual(difference(before, snapshot(g.root)), [], "looking and choosing write nothing");
  const done = await continues(g, "main");
  assert.match(done.text, /settled by choice: 2 ours, 3 theirs/);
  assert.equal(load(g.storage("main")).transaction.properties["lancefs.policy"], "chosen");
  assert.equal(config(g).k, "f");
  await merge(g, "main", "f", "up-to-date");
  const expected = [...changed(changed(MINE, 3, { v: "f3" }), 7, { v: "f7" }), ...rows(100, 2, "f")];
  await checkThenUnmount(g, { main: expected });
});

onEach("C67 words that are no choice, tools that write, and what cannot be written", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  configure(g.ds, { config: { k: "0" } });
  await g.fork("f");
  configure(g.ds, { config: { k: "m" } });
  configure(g.storage("f"), { config: { k: "f" } });
  await stopsOn(g, "main", "f", 1);
  const dir = path.join(conflictsDir(g, "main"), "0"),
    choice = path.join(dir, "choice");
  for (const word of ["both", "mine", "ours theirs", "OURS", "1"]) {
    const r = await choose(g, "main", 0, word);
    assert.equal(r.errno, "EINVAL", word);
    assert.equal(conflict(g, "main", 0).choice, "");
  }
  const script = async (text) => (await sh(text, [dir, choice], { env: { LC_ALL: "C" } })).code;
  assert.equal(await script('printf "theirs" > "$2"'), 0, "a line without its newline counts when it is closed");
  assert.equal(conflict(g, "main", 0).choice, "theirs");
  assert.equal(await script('printf "  ours \\r\\n" > "$2" && : > "$2" && touch "$2" && printf "\\n" >> "$2"'), 0);
  assert.equal(conflict(g, "main", 0).choice, "ours");
  assert.equal(await script('cat "$1/kind" "$1/unit" | diff - <(printf "value\\nconfig key k\\n")'), 0);
  for (const bad of ['echo x > "$1/kind"', 'rm "$2"', 'rm -r "$1"', 'mkdir "$1/new"', 'touch "$1/new"', 'mv "$2" "$1/x"', 'ln -s a "$1/l"', 'sed -i s/ours/theirs/ "$2"'])
    assert.notEqual(await script(`${bad} 2>/dev/null`), 0, bad);
  for (const none of ["1", "00", "-1", "x", "0/nothing", "0/base.lance", "99999999999"])
    assert.equal(fs.existsSync(path.join(conflictsDir(g, "main"), none)), false, none);
  assert.equal(conflict(g, "main", 0).choice, "ours");
  const r = await ctl(control(g, "main"), "continue rows=source-wins");
  assert.equal(r.errno, "EINVAL", "the command that waits keeps its options");
  await continues(g, "main", "empty-merge");
  assert.equal(config(g).k, "m");
  await doesNotContinue(g, "main", "ENOENT");
  await doesNotContinue(g, "main", "ENOENT", "abort");
  await checkThenUnmount(g, { main: TWENTY });
});

onEach("the tip moves meanwhile: planned again, choices kept where the unit is the same, asked again where it is not", async (t, engine) => {
  const g = await clashing(t, engine);
  const { source } = await stopsOn(g, "main", "f", 5);
  const list = conflicts(g, "main");
  for (const i of numbers(g, "main")) await chooses(g, "main", i, list[i].unit.startsWith("row") ? "ours" : "theirs");
  // A commit of somebody else: another value of the key, and a row that f has updated too.
  configure(g.ds, { config: { k: "m2" } });
  await update(g, "f", 11, "later"); // not of the version that was stopped
  await g.op("main", "add", { rows: rows(200, 1, "m") });
  const a = await doesNotContinue(g, "main");
  assert.equal(a.conflicts, "1");
  assert.match(a.text, /unit: config key k\n +base: "?0"?\n +ours: m2\n/);
  const now = conflicts(g, "main");
  assert.deepEqual(now.map((c) => c.unit), list.map((c) => c.unit), "numbers stay");
  assert.deepEqual(now.map((c) => c.choice), now.map((c) => (c.unit.startsWith("row") ? "ours" : "")), "the key is asked again");
  await chooses(g, "main", at(now, "config key k"), "ours");
  const done = await continues(g, "main");
  assert.equal(done.source, source, "what was stopped is what is merged");
  assert.equal(config(g).k, "m2");
  await checkTip(g, "main", [...MINE, ...rows(200, 1, "m"), ...rows(100, 2, "f")]);
  await merge(g, "main", "f"); // the later commit
  await checkThenUnmount(g, { main: [...changed(MINE, 11, { v: "later" }), ...rows(200, 1, "m"), ...rows(100, 2, "f")] });
});

onEach("a new conflict after the tip moved is shown under a new number, and refused until it is chosen", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f");
  await update(g, "main", 3, "m3");
  await update(g, "f", 3, "f3");
  await update(g, "f", 5, "f5");
  await stopsOn(g, "main", "f", 1);
  await chooses(g, "main", 0, "theirs");
  await update(g, "main", 5, "m5");
  const a = await doesNotContinue(g, "main");
  assert.equal(a.conflicts, "1");
  assert.deepEqual(conflicts(g, "main").map((c) => [c.unit, c.choice]), [[ROW(3), "theirs"], [ROW(5), ""]]);
  await checkRows(g, "main", 1, "ours", [{ ...rows(5, 1)[0], v: "m5" }]);
  await chooses(g, "main", 1, "ours");
  await continues(g, "main");
  await checkThenUnmount(g, { main: changed(changed(TWENTY, 3, { v: "f3" }), 5, { v: "m5" }) });
});

onEach("an update of many rows goes as a whole: never a row that nobody chose", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f", "all");
  await g.op("main", "update", { where: "id IN (3, 4)", values: { v: "m" } }); // one commit
  await update(g, "f", 3, "f3");
  await g.op("all", "update", { where: "id IN (3, 4)", values: { v: "a" } });
  await stopsOn(g, "main", "f", 1);
  await checkRows(g, "main", 0, "ours", changed(changed(TWENTY, 3, { v: "m" }), 4, { v: "m" }).slice(3, 5)); // one of them
  await chooses(g, "main", 0, "theirs");
  const a = await doesNotContinue(g, "main");
  assert.match(a.text, /choice: theirs\n +reason: .*one commit with row 4 of fragment 0, which is in no conflict/);
  await aborts(g, "main");
  await stopsOn(g, "main", "all", 2);
  await chooses(g, "main", 0, "theirs");
  await chooses(g, "main", 1, "ours");
  const b = await doesNotContinue(g, "main");
  assert.match(b.text, /reason: .*for which the other side is chosen/);
  await chooses(g, "main", 1, "theirs");
  await continues(g, "main");
  await checkThenUnmount(g, { main: changed(changed(TWENTY, 3, { v: "a" }), 4, { v: "a" }) });
});

onEach("two shells: other branches and other merges go on; a command that waits with choices is not pushed aside", async (t, engine) => {
  const g = await clashing(t, engine);
  await g.fork("clean", "clash", "other");
  await g.op("clean", "add", { rows: rows(300, 1, "c") });
  configure(g.storage("clash"), { config: { k: "c" } });
  configure(g.ds, { config: { k: "n" } });
  await g.op("other", "delete", { where: "id = 9" });
  await stopsOn(g, "main", "f", 5);
  await stopsOn(g, "other", "f", 5);
  for (const i of numbers(g, "main")) await chooses(g, "main", i, "ours");
  assert.ok(conflicts(g, "other").every((c) => c.choice === ""), "another branch has its own");
  await merge(g, "main", "clean"); // a second shell
  const r = await ctl(control(g, "main"), "clash");
  assert.equal(r.errno, "ECANCELED");
  assert.match(r.answer.text, /^waiting: .*another command waits/m);
  assert.ok(conflicts(g, "main").every((c) => c.choice === "ours"), "the choices are there");
  await aborts(g, "other");
  await continues(g, "main");
  assert.equal(config(g).k, "n");
  await stopsOn(g, "main", "clash", 1); // now it can wait
  await aborts(g, "main");
  await checkThenUnmount(g, { main: [...MINE, ...rows(300, 1, "c"), ...rows(100, 2, "f")] });
});

onEach("abort forgets; so does an unmount, and continue says so; a dry run leaves all as it is", async (t, engine) => {
  const g = await clashing(t, engine);
  await stopsOn(g, "main", "f", 5);
  for (const i of numbers(g, "main")) await chooses(g, "main", i, "theirs");
  const before = snapshot(g.root);
  const dry = await ctl(control(g, "main"), "continue dry-run");
  assert.equal(dry.code, 0, dry.answer.text);
  assert.equal(dry.answer["would-be"], "merged");
  assert.equal(numbers(g, "main").length, 5);
  await aborts(g, "main");
  const again = await doesNotContinue(g, "main", "ENOENT");
  assert.match(again.text, /nothing waits for choices on main/);
  await stopsOn(g, "main", "f", 5);
  assert.ok(conflicts(g, "main").every((c) => c.choice === ""), "choices were forgotten too");
  for (const i of numbers(g, "main")) await chooses(g, "main", i, "theirs");
  await g.m.unmount();
  assert.deepEqual(difference(before, snapshot(g.root)), [], "nothing of it is in the storage");
  g.m = await mount(g.w, g.ds);
  assert.deepEqual(numbers(g, "main"), []);
  assert.match((await doesNotContinue(g, "main", "ENOENT")).text, /unmount/);
  await checkThenUnmount(g, { main: MINE });
});

onEach("a pick and a revert that stopped are settled in the same way, through any of the files", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  await g.fork("f");
  await update(g, "f", 3, "f3"); // f@2
  await update(g, "main", 3, "m3");
  await stopsOn(g, "main", "f@2", 1, ".cherry-pick");
  await checkRows(g, "main", 0, "base", [rows(3, 1)[0]]);
  await checkRows(g, "main", 0, "theirs", [{ ...rows(3, 1)[0], v: "f3" }]);
  await chooses(g, "main", 0, "theirs");
  await continues(g, "main", "merged", { file: ".cherry-pick" });
  await checkTip(g, "main", changed(TWENTY, 3, { v: "f3" }));
  assert.equal(load(g.storage("main")).transaction.properties["lancefs.op"], "cherry-pick");
  // A key that a version set, and a later one set again.
  configure(g.ds, { config: { k: "1" } });
  const set = load(g.ds).version;
  configure(g.ds, { config: { k: "2" } });
  for (const [side, value] of [["ours", "2"], ["theirs", undefined]]) {
    await stopsOn(g, "main", `${set}`, 1, ".revert");
    const c = conflict(g, "main", 0);
    assert.deepEqual([c.base, c.ours, c.theirs], ["1", "2", "(absent)"]);
    await chooses(g, "main", 0, side);
    await continues(g, "main", ["merged", "up-to-date"], { file: ".merge" });
    assert.equal(config(g).k, value);
  }
  // An update taken back after its row was updated again: theirs is the row as it was before.
  await update(g, "main", 5, "one");
  const one = load(g.ds).version;
  await update(g, "main", 5, "two");
  await stopsOn(g, "main", `${one}`, 1, ".revert");
  await checkRows(g, "main", 0, "base", [{ ...rows(5, 1)[0], v: "one" }]);
  await checkRows(g, "main", 0, "ours", [{ ...rows(5, 1)[0], v: "two" }]);
  await checkRows(g, "main", 0, "theirs", rows(5, 1));
  const r = await choose(g, "main", 0, "ours");
  assert.equal(r.errno, "EOPNOTSUPP");
  assert.match(r.answer.error, /taken back as a whole/);
  await chooses(g, "main", 0, "theirs");
  await continues(g, "main", "merged", { file: ".revert" });
  await checkThenUnmount(g, { main: changed(TWENTY, 3, { v: "f3" }) });
});

onEach("a replay: choices of one step are not those of the next, and all steps are made in the end", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY);
  configure(g.ds, { config: { k: "0" } });
  await g.fork("f");
  configure(g.ds, { config: { k: "m" } });
  for (const k of ["a", "b"]) configure(g.storage("f"), { config: { k } });
  await g.op("f", "delete", { where: "id = 1" });
  const start = load(g.ds).version;
  await stopsOn(g, "main", "f replay", 1);
  assert.equal(conflict(g, "main", 0).theirs, "a");
  await chooses(g, "main", 0, "ours");
  const a = await doesNotContinue(g, "main");
  assert.match(a.text, /^step: "f@\d+, 2 of 3"$/m);
  assert.deepEqual(conflicts(g, "main").map((c) => [c.theirs, c.choice]), [["a", "ours"], ["b", ""]]);
  await chooses(g, "main", 1, "theirs");
  const done = await continues(g, "main");
  assert.equal(config(g).k, "b");
  assert.equal(Number(done.version), load(g.ds).version);
  assert.ok(load(g.ds).version > start + 1, done.text);
  await merge(g, "main", "f", "up-to-date");
  await checkThenUnmount(g, { main: without(TWENTY, 1) });
});

onEach("MNT/.merge stops and continues with the target named; stable row ids name the one row of a commit of many", async (t, engine) => {
  const g = withOps(await mounted(t, "stable_row_ids", engine));
  const root = path.join(g.m.mnt, ".merge");
  await g.op("main", "fork", { name: "x", from: "main" });
  await g.op("main", "update", { where: "id IN (3, 4)", values: { v: "m" } });
  await g.op("x", "update", { where: "id = 3", values: { v: "x" } });
  const expected = changed(changed([...rows(0, 10), ...rows(200, 4, "m")], 5, { v: "mm" }), [3, 4], { v: "m" });
  const r = await ctl(root, "x main");
  assert.equal(r.errno, "ECANCELED", r.answer.text);
  await checkRows(g, "main", 0, "ours", [{ ...rows(3, 1)[0], v: "m" }]);
  await chooses(g, "main", 0, "ours");
  const done = await ctlThrough(root, "continue main\n");
  assert.equal(done.errno, undefined, done.answer.text);
  assert.match(done.answer.result, /merged|empty-merge/);
  await checkThenUnmount(g, { main: expected });
});

onEach("a rebase that stopped: each step's conflicts are chosen, continue moves the name; abort leaves all as it was", async (t, engine) => {
  const g = await scratch(t, engine, TWENTY),
    file = ".rebase";
  await g.fork("f");
  for (const id of [3, 5]) {
    await update(g, "main", id, `m${id}`);
    await update(g, "f", id, `f${id}`);
  }
  await g.op("f", "add", { rows: rows(100, 1, "f") });
  const old = changed(changed(TWENTY, 3, { v: "f3" }), 5, { v: "f5" });
  await stopsOn(g, "f", "main", 1, file);
  await aborts(g, "f", file);
  await checkTip(g, "f", [...old, ...rows(100, 1, "f")]);

  await stopsOn(g, "f", "main", 1, file);
  const [first] = numbers(g, "f");
  assert.equal(conflict(g, "f", first).unit, ROW(3));
  await checkRows(g, "f", first, "base", rows(3, 1));
  await checkRows(g, "f", first, "ours", changed(rows(3, 1), 3, { v: "m3" })); // the new base's
  await checkRows(g, "f", first, "theirs", changed(rows(3, 1), 3, { v: "f3" }));
  await chooses(g, "f", first, "theirs"); // the branch's own commit, as git says
  await doesNotContinue(g, "f", "ECANCELED", "continue", file); // the next step has one too
  const open = numbers(g, "f").filter((k) => !conflict(g, "f", k).choice);
  assert.equal(open.length, 1);
  assert.equal(conflict(g, "f", open[0]).unit, ROW(5));
  await chooses(g, "f", open[0], "ours");
  await continues(g, "f", "rebased", { file });
  await checkThenUnmount(g, { f: [...changed(changed(TWENTY, 3, { v: "f3" }), 5, { v: "m5" }), ...rows(100, 1, "f")] });
});
