// SPDX-License-Identifier: Apache-2.0
// A power cut after any call of a commit through the mount, or of a merge: what was flushed is there, and of the rest
// nothing, or the names without what is in the files. Both are put on the disk from a record of the daemon's calls, and
// stock Lance reads the old version or the new one, whole. What was told to be done survives.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { changed, expectRows, OVERLAP, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { onEach } from "../harness/tip.mjs";
import { ENGINES, generate, recorderPath, workspace } from "../harness/workspace.mjs";

// What is on the disk, by inode number: files are bytes, directories are entries [name, "d" or "f", inode number].
function onDisk(root) {
  const files = new Map(),
    dirs = new Map();
  const walk = (dir) => {
    const entries = fs.readdirSync(dir, { withFileTypes: true }).map((e) => {
      const full = path.join(dir, e.name),
        { ino } = fs.statSync(full);
      if (e.isDirectory()) walk(full);
      else files.set(ino, fs.readFileSync(full));
      return [e.name, e.isDirectory() ? "d" : "f", ino];
    });
    dirs.set(fs.statSync(dir).ino, entries);
  };
  walk(root);
  return { files, dirs };
}

const NOTHING = Buffer.alloc(0);
const tree = (root, dirs, files) => {
  const out = new Map();
  const walk = (ino, at) => {
    out.set(at, null);
    for (const [name, type, child] of dirs.get(ino) ?? [])
      type === "d" ? walk(child, path.join(at, name)) : out.set(path.join(at, name), files.get(child) ?? NOTHING);
  };
  walk(root, "");
  return out;
};
const keyOf = (state) => {
  const hash = createHash("sha1");
  for (const [p, bytes] of [...state].sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(`${p}\0`).update(bytes ?? "/");
  return hash.digest("hex");
};

// Each different state that a cut after some call leaves: { where, state }, and the last one of what was flushed.
function cuts(root, before, events, copies) {
  const files = new Map(before.files),
    flushed = new Map(before.dirs),
    names = new Map(before.dirs),
    found = new Map();
  let last;
  events.forEach((e, i) => {
    if (e.new !== undefined) files.set(e.new, NOTHING);
    if (e.file !== undefined) files.set(e.file, fs.readFileSync(path.join(copies, e.copy)));
    if (e.dir !== undefined) names.set(e.dir, e.entries);
    if (e.synced) flushed.set(e.dir, e.entries);
    for (const [dirs, what] of [[flushed, "what was flushed"], [names, "all names, and the bytes that were flushed"]]) {
      const state = tree(root, dirs, files),
        key = keyOf(state);
      if (!found.has(key)) found.set(key, { where: `${what}, after call ${i + 1} of ${events.length} (${e.call})`, state });
      if (dirs === flushed) last = state;
    }
  });
  return { states: [...found.values()], last };
}

async function putOnDisk(dir, state) {
  await must(run("rm", ["-rf", "--one-file-system", dir]));
  for (const [p, bytes] of state)
    bytes === null ? fs.mkdirSync(path.join(dir, p), { recursive: true }) : fs.writeFileSync(path.join(dir, p), bytes);
}

// Does `act` on a recorded mount, and reads `branch` after every cut: `old` or `now`, and `now` when it was done.
async function everyCut(w, g, branch, act, old, now, options = []) {
  const to = path.join(w.dir, "record"),
    root = fs.realpathSync(g.ds),
    before = onDisk(root);
  await must(run("rm", ["-rf", to, `${to}.done`]));
  const m = await mount(w, g.ds, {
    options,
    env: { LD_PRELOAD: await recorderPath(), LANCEFS_RECORD_ROOT: root, LANCEFS_RECORD_TO: to },
  });
  const was = tip(g.storage(branch));
  fs.mkdirSync(to);
  await act(m);
  fs.renameSync(to, `${to}.done`);
  await m.unmount();
  const done = tip(g.storage(branch));
  assert.ok(done > was, "a version was made");
  const events = fs.readFileSync(`${to}.done/log`, "utf8").trim().split("\n").map((l) => JSON.parse(l)),
    { states, last } = cuts(fs.statSync(root).ino, before, events, `${to}.done`),
    check = async (state, where, versions, expected, engine) => {
      await putOnDisk(g.ds, state);
      const at = tip(g.storage(branch));
      assert.ok(versions.includes(at), `${where}: version ${at}`);
      const answer = await stock[engine].read(g.ds, branch).catch((e) => assert.fail(`${where}: ${e.message}`));
      expectRows(answer, at === done ? now : expected, `${branch} with ${where}, read by ${engine}`);
    };
  for (const [i, { state, where }] of states.entries()) await check(state, where, [was, done], old, ENGINES[i % 2]);
  for (const engine of ENGINES) await check(last, "what was flushed when it was done", [done], now, engine);
  return states.length;
}

const COMMITS = {
  "an append": ["add", { rows: rows(900, 2, "w") }, (all) => [...all, ...rows(900, 2, "w")]],
  "a delete": ["delete", { where: "id = 3" }, (all) => without(all, 3)],
  "an update": ["update", { where: "id = 3", values: { v: "up" } }, (all) => changed(all, 3, { v: "up" })],
  "an index": ["index", { column: "id" }, (all) => all],
};
for (const [name, [op, args, next]] of Object.entries(COMMITS))
  onEach(`${name} through the mount survives a power cut after any call, or was not made`, async (t, engine) => {
    const w = workspace(t),
      g = await generate(w, "overlap_deletes", engine);
    for (const branch of ["main", "feature"]) {
      const old = OVERLAP[branch];
      const n = await everyCut(w, g, branch, (m) => stock[engine].op(m.table(branch), "main", op, args), old, next(old));
      assert.ok(n >= 6, `${n} states`);
      await g.reset();
    }
  });

for (const mode of ["graft", "link", "copy"])
  test(`a merge (${mode}) survives a power cut after any call, or was not made`, async (t) => {
    const w = workspace(t),
      g = await generate(w, "overlap_deletes", "lance12");
    const merge = async (m) => {
      const r = await ctl(path.join(m.mnt, "tree/main/.merge"), `feature mode=${mode}`);
      assert.equal(r.code, 0, r.answer.text);
    };
    const n = await everyCut(w, g, "main", merge, OVERLAP.main, OVERLAP.union);
    assert.ok(n >= 6, `${n} states`);
  });

test("without flushing (nosync) the same cuts lose the version: the cuts do cut", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    [op, args, next] = COMMITS["an append"],
    append = (m) => stock.lance12.op(m.table("main"), "main", op, args);
  await assert.rejects(everyCut(w, g, "main", append, OVERLAP.main, next(OVERLAP.main), ["nosync"]), /what was flushed|all names/);
});
