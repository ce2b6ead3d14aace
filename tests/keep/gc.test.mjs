// SPDX-License-Identifier: Apache-2.0
// MNT/.gc: what nothing holds goes, by kind; what is young stays; what any version needs stays always.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { load, tip } from "../interop/manifest.mjs";
import { answerOf, ctl } from "../harness/control.mjs";
import { gc, gcFails, KINDS, paths } from "../harness/keep.mjs";
import { barrier } from "../harness/hooks.mjs";
import { mount } from "../harness/mount.mjs";
import { OVERLAP, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, control, merges, mounted, onEach } from "../harness/tip.mjs";
import { difference, generate, snapshot, stopperPath, workspace } from "../harness/workspace.mjs";

const MAIN = OVERLAP.main;
const FEATURE = OVERLAP.feature;
const UNION = OVERLAP.union;
const write = (file, bytes) => {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, Buffer.alloc(bytes, 1));
};

// Data sets in which stock Lance left nothing behind: every file is one that some version names.
for (const [generator, name] of [
  ["overlap_deletes", "t"],
  ["chain", "t"],
  ["bitmap_deletes", "t"],
  ["v1_names", "t"],
  ["stable_row_ids", "t"],
  ["compaction", "t"],
  ["nested_types", "t"],
  ["overwrite_restore", "t"],
  ["cleaned", "t"],
  ["clones", "b"],
])
  onEach(`${generator}: nothing that a version names is taken for garbage`, async (t, engine) => {
    const g = await mounted(t, generator, engine, { generated: { name } }),
      before = snapshot(g.root);
    const dry = await gc(g, "older-than=0s dry-run");
    const r = await gc(g);
    assert.deepEqual([dry.result, r.result, r.total.files], ["dry-run", "nothing-to-remove", 0], r.text);
    assert.deepEqual(difference(before, snapshot(g.root)), []);
    await g.m.unmount();
  });

// One file of each kind that no version names, in main and on a branch.
const STEM = "0".repeat(24) + "abcdef0123456789abcdef0123",
  UUID = "01234567-89ab-cdef-0123-456789abcdef";
const GARBAGE = {
  data: [`data/${STEM}.lance`, `data/${STEM}/00000000000000000000000000000001.blob`],
  deletions: ["_deletions/0-1-77.arrow", "_deletions/0-1-78.bin"],
  indexes: [`_indices/${UUID}/page_data.lance`, `_indices/${UUID}/page_lookup.lance`],
  transactions: [`_transactions/1-${UUID}.txn`],
  staged: ["_versions/.tmp-lancefs-0011223344556677", "data/.tmpAbC123", "_versions/9.manifest#1"],
};
// Names that no writer of Lance gives: not ours to judge.
const FOREIGN = ["data/notes.txt", "_deletions/README", "_indices/mine/x", "notes/data/y.lance"];

onEach("garbage of every kind: counted by a dry run, spared while young, then removed", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    good = snapshot(g.ds),
    put = [];
  for (const home of ["", "tree/feature"])
    for (const [kind, names] of Object.entries(GARBAGE))
      for (const [i, name] of names.entries()) {
        write(path.join(g.ds, home, name), 100 + i);
        put.push({ kind, bytes: 100 + i });
      }
  for (const name of FOREIGN) write(path.join(g.ds, name), 5);
  const expected = (kind) => ({
    files: put.filter((p) => p.kind === kind).length,
    bytes: put.filter((p) => p.kind === kind).reduce((n, p) => n + p.bytes, 0),
  });
  const young = await gc(g, "older-than=1h");
  assert.deepEqual([young.result, young.total.files, Number(young["too-young"])], ["nothing-to-remove", 0, put.length]);
  const dry = await gc(g, "dry-run older-than=0s"),
    r = await gc(g);
  for (const answer of [dry, r])
    for (const kind of KINDS) assert.deepEqual(answer[kind], expected(kind), `${kind}: ${answer.text}`);
  assert.equal(r.result, "removed");
  const foreign = FOREIGN.map((f) => `new: ${f}`);
  const files = difference(good, snapshot(g.ds)).filter((l) => fs.statSync(path.join(g.ds, l.slice(5))).isFile());
  assert.deepEqual(files, foreign.sort(), "the data set as it was, and what is not Lance's");
  assert.equal((await gc(g)).result, "nothing-to-remove");
  await checkThenUnmount(g, { main: MAIN, feature: FEATURE });
});

test("a link of old bytes is as young as the link", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    file = path.join(g.w.dir, "old");
  write(file, 10);
  fs.utimesSync(file, 1e9, 1e9);
  fs.linkSync(file, path.join(g.ds, "data", `${STEM}.lance`));
  const r = await gc(g, "older-than=1m");
  assert.deepEqual([r.total.files, Number(r["too-young"])], [0, 1], r.text);
  const all = await gc(g);
  assert.deepEqual(all.data, { files: 1, bytes: 0 }, "the bytes are still there under their other name");
  await g.m.unmount();
});

test("words that are off", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    before = snapshot(g.root);
  for (const words of ["main", "older-than=7", "older-than=d", "older-than=-1d", "older-than=7dd", "older-than=", "older-than=99999999w", "younger-than=1d"])
    await gcFails(g, words, "EINVAL");
  const ro = await mount(g.w, g.ds, { options: ["ro"] });
  assert.equal((await ctl(path.join(ro.mnt, ".gc"), "older-than=0s")).errno, "EROFS");
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("a manifest or a ref that cannot be read: nothing is removed, and it is named", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  write(path.join(g.ds, "data", `${STEM}.lance`), 1);
  const dir = path.join(g.ds, "tree/feature/_versions"),
    victim = fs.readdirSync(dir).filter((f) => f.endsWith(".manifest")).sort().at(-1),
    bytes = fs.readFileSync(path.join(dir, victim)),
    ref = path.join(g.ds, "_refs/branches/feature.json"),
    json = fs.readFileSync(ref);
  fs.writeFileSync(path.join(dir, victim), bytes.subarray(0, bytes.length >> 1));
  const before = snapshot(g.root);
  assert.match((await gcFails(g, "older-than=0s", "EIO")).error, new RegExp(victim));
  fs.writeFileSync(path.join(dir, victim), bytes);
  fs.writeFileSync(ref, "{");
  assert.match((await gcFails(g, "older-than=0s", "EIO")).error, /_refs\/branches/);
  fs.writeFileSync(ref, json);
  fs.writeFileSync(path.join(dir, victim), bytes.subarray(0, bytes.length >> 1));
  assert.deepEqual(difference(before, snapshot(g.root)), []);
  fs.writeFileSync(path.join(dir, victim), bytes);
  assert.equal((await gc(g)).data.files, 1);
});

// --- line storage ---

const lines = (g) => {
  const [uuid] = JSON.parse(fs.readFileSync(path.join(g.ds, "_refs/branches/feature.json"))).identifier.version_mapping.at(-1).slice(-1);
  return { feature: path.join(g.ds, "_lancefs/lines", uuid), main: path.join(g.ds, "_lancefs/lines/main") };
};

onEach("line storage: a graft that nobody names any more goes, the base of the next merge stays", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (...a) => stock[engine].op(g.ds, ...a),
    { feature } = lines(g);
  await merges(g, "main", "feature");
  assert.equal((await gc(g)).total.files, 0, "all of it is needed");
  await op("feature", "add", { rows: rows(7000, 1) });
  await op("feature", "delete", { where: "id = 7000" });
  await op("feature", "add", { rows: rows(7100, 1) });
  await merges(g, "main", "feature");
  assert.equal(paths(path.join(feature, "_versions")).length, 2, "two bases are kept");
  assert.equal((await gc(g)).total.files, 0, "main's old versions still hold them");
  await op("main", "optimize");
  await op("main", "clean");
  const all = [...UNION, ...rows(7100, 1)],
    dry = await gc(g, "older-than=0s dry-run"),
    r = await gc(g);
  assert.deepEqual(dry.lines, r.lines, "a dry run tells what will go");
  assert.ok(r.lines.files > 0, r.text);
  assert.deepEqual(paths(path.join(feature, "data")), [], "main was compacted: no graft is left");
  assert.equal(paths(path.join(feature, "_versions")).length, 1, "the newest base stays");
  await checkStorage(g, "main", all);
  await op("feature", "add", { rows: rows(7200, 1) });
  await merges(g, "main", "feature");
  await checkStorage(g, "main", [...all, ...rows(7200, 1)]);
  await g.m.unmount();
});

onEach("a branch that stock deleted: its line's files stay while a version names them, then go with the line", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (...a) => stock[engine].op(g.ds, ...a),
    { feature } = lines(g);
  await merges(g, "main", "feature");
  await op("main", "drop", { name: "feature" });
  await gc(g);
  await checkStorage(g, "main", UNION);
  assert.ok(paths(path.join(feature, "data")).length > 0);
  await op("main", "restore", { version: 6 }); // before the merge
  await op("main", "clean");
  const r = await gc(g);
  assert.ok(r.lines.bytes > 0, `these were the last names of the bytes: ${r.text}`);
  assert.ok(!fs.existsSync(feature), "nothing holds anything of that line");
  await checkThenUnmount(g, { main: MAIN });
});

// --- together with merges ---

onEach("merges and .gc older-than=0s at the same time: no row is lost", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    other = await mount(g.w, g.ds); // a daemon of its own: only the data set's lock is between them
  let all = UNION;
  await merges(g, "main", "feature");
  for (const [i, mode] of ["graft", "link", "copy", "graft", "link", "copy"].entries()) {
    const added = rows(8000 + i, 1);
    await stock[engine].op(g.ds, "feature", "add", { rows: added });
    await stock[engine].op(g.ds, "feature", "delete", { where: `id = ${100 + i}` });
    all = [...without(all, 100 + i), ...added];
    let merging = true;
    const sweeps = (async () => {
      while (merging) await gc({ m: other });
    })();
    await merges(g, "main", `feature mode=${mode}`).finally(() => {
      merging = false;
    });
    await sweeps;
    await gc(g);
  }
  await other.unmount();
  await checkThenUnmount(g, { main: all });
});

test("what a reader of any retained version needs stays: every version of main and feature reads as before", async (t) => {
  const w = workspace(t),
    g = { w, engine: "lance12", ...(await generate(w, "overlap_deletes", "lance12")) };
  g.m = await mount(w, g.ds);
  await merges(g, "main", "feature");
  await merges(g, "feature", "main", "fast-forward");
  await stock.lance12.op(g.ds, "main", "optimize");
  const read = async () => {
    const out = [];
    for (const branch of ["main", "feature"])
      for (const version of span(branch === "main" ? 1 : 3, 8)) {
        await stock.lance12.op(g.ds, "main", "fork", { name: `at`, from: branch, version }).then(
          async () => {
            out.push([branch, version, (await stock.lance10.read(g.ds, "at")).rows.length]);
            await stock.lance12.op(g.ds, "main", "drop", { name: "at" });
          },
          () => out.push([branch, version, "none"]),
        );
      }
    return out;
  };
  const before = await read();
  await gc(g);
  assert.deepEqual(await read(), before);
});

test("the file tells what it does, and how far a command is that removes", async (t) => {
  const w = workspace(t),
    g = { w, ...(await generate(w, "overlap_deletes", "lance12")) },
    prefix = path.join(w.dir, "sweep"),
    armed = path.join(w.dir, "armed"),
    stop = await barrier(w, "sweep");
  for (let i = 0; i < 5; i++) write(path.join(g.ds, "data", `${"0".repeat(24)}${"abcdef0123456789abcdef012"}${i}.lance`), 100);
  g.m = await mount(w, g.ds, { env: { LD_PRELOAD: await stopperPath(), LANCEFS_STOP_ARMED: armed, LANCEFS_STOP_HOLD: prefix } });
  assert.match((await answerOf(path.join(g.m.mnt, ".gc"))).text, /^# \.gc: \[older-than=7d\] \[dry-run\]/);
  assert.equal((await answerOf(control(g, "main"))).text.includes(".gc"), false);
  fs.writeFileSync(armed, "4\n"); // before the fourth file goes
  const running = gc(g);
  await stop.reached();
  const a = await answerOf(path.join(g.m.mnt, ".gc"));
  assert.deepEqual([a.result, a.command, a.progress], ["running", "older-than=0s", ["removing files: 3"]], a.text);
  fs.rmSync(armed);
  await stop.release();
  assert.deepEqual((await running).data, { files: 5, bytes: 500 });
});

// What the daemon has read from files, of all its system calls.
const bytesRead = (m) => Number(/^rchar: (\d+)$/m.exec(fs.readFileSync(`/proc/${m.pid}/io`, "utf8"))[1]);

test("manifests never change: what they refer to is read once, and of a new version only that", async (t) => {
  const g = await mounted(t, "many_fragments", "lance12", { generated: { args: ["120"] } }),
    sizes = () => span(1, tip(g.ds)).map((v) => fs.statSync(load(g.ds, v).file).size),
    read = async () => {
      const before = bytesRead(g.m);
      await gc(g);
      return bytesRead(g.m) - before;
    };
  const all = sizes().reduce((n, size) => n + size, 0),
    first = await read();
  assert.ok(first >= all, `the first one reads all of ${all} bytes: ${first}`);
  const again = await read();
  assert.ok(again < all / 10, `another one reads nothing of it again: ${again}`);
  await stock.lance12.op(g.ds, "main", "add", { rows: rows(9000, 1) });
  const [newest] = sizes().slice(-1),
    after = await read();
  assert.ok(after > newest && after < all / 10 + 4 * newest, `of a new version ${newest} bytes: ${after}`);
  await g.m.unmount();
});
