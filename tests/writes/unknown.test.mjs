// SPDX-License-Identifier: Apache-2.0
// C30: what a newer Lance writes that lancefs does not know. Fields are carried, in the message, in fragments and in their
// files, through a view and through a merge; feature flags that nobody here knows are no permission to write.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { manifests, tip } from "../interop/manifest.mjs";
import { build, edit, parse, remade } from "../interop/wire.mjs";
import { errnoOf } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { expectRows, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, merges, onEach, stops } from "../harness/tip.mjs";
import { difference, generate, place, snapshot, workspace } from "../harness/workspace.mjs";

const TEN = rows(0, 10),
  FEATURE = [...without(TEN, 4), ...rows(100, 2, "f")],
  UNION = [...TEN, ...rows(100, 2, "f")];
const VERSION = 3,
  FRAGMENTS = 2,
  FILES = 2,
  WRITER_FLAGS = 10,
  BASE_ID = 7; // fields of Manifest, DataFragment, DataFile
const name = (v) => `${(1n << 64n) - 1n - BigInt(v)}.manifest`;
const newest = (dir) => fs.readFileSync(path.join(dir, "_versions", manifests(dir).at(-1).name));

// [[field, type, value], ...] of the manifest file's message.
function fields(bytes) {
  let out;
  remade(bytes, (m) => (out = m));
  return out;
}
const values = (m, field) => m.filter(([f]) => f === field).map(([, , v]) => (Buffer.isBuffer(v) ? v.toString() : v));
const first = (m, field) => parse(m.find(([f]) => f === field)[2]);

async function open(w, engine, what) {
  const { root } = await generate(w, "hostile", engine, { args: ["/nowhere"] }),
    dir = path.join(root, what),
    g = { w, ...place(path.join(dir, "t.lance"), dir) };
  return Object.assign(g, { m: await mount(w, g.ds) });
}

onEach("C30 an unknown field of the branch and of the target stays where it is, through a merge", async (t, engine) => {
  const g = await open(workspace(t), engine, "unknown_field"),
    main = path.join(g.ds, "_versions", name(tip(g.ds)));
  await g.m.unmount();
  fs.writeFileSync(main, remade(fs.readFileSync(main), (m) => [...m, [998, 2, Buffer.from("the target's")]]));
  g.m = await mount(g.w, g.ds);
  const before = snapshot(g.storage("feature"));
  assert.deepEqual(values(fields(newest(g.m.tree("feature"))), 999), ["keep me"], "the view shows it");
  await stock[engine].op(g.ds, "main", "delete", { where: "id = 0" });
  const kept = values(fields(newest(g.ds)), 998); // whether the engine keeps it is the engine's
  await merges(g, "main", "feature");
  assert.deepEqual(values(fields(newest(g.ds)), 998), kept, "the merge does as the version that it builds on");
  await checkTip(g, "main", without(UNION, 0, 4));
  await checkTip(g, "feature", FEATURE);
  assert.deepEqual(difference(before, snapshot(g.storage("feature"))), []);
});

onEach("C30 a target that nobody but us changes keeps its unknown field", async (t, engine) => {
  const g = await open(workspace(t), engine, "unknown_field");
  await merges(g, "feature", "main", "up-to-date");
  await stock[engine].op(g.ds, "main", "add", { rows: rows(200, 1, "m") });
  await merges(g, "feature", "main");
  assert.deepEqual(values(fields(newest(g.storage("feature"))), 999), ["keep me"]);
  assert.deepEqual(values(fields(newest(g.m.tree("feature"))), 999), ["keep me"]);
  await checkTip(g, "feature", [...FEATURE, ...rows(200, 1, "m")]);
});

onEach("C30 a newer writer's commit through the mount is stored with all its fields, and shown as it was written", async (t, engine) => {
  const g = await open(workspace(t), engine, "unknown_field"),
    view = g.m.tree("feature", "_versions"),
    was = fields(newest(g.storage("feature"))),
    to = tip(g.storage("feature")) + 1;
  // the branch's newest version once more, with fields that are unknown in the message, a fragment and its file
  const file = (f) => [...f, [55, 0, 7n]],
    fragment = (f) => [...edit(f, FILES, (b) => build(file(parse(b))), 0), [99, 2, Buffer.from("of a fragment")]],
    written = remade(fs.readFileSync(path.join(view, name(to - 1))), (m) => [
      ...edit(edit(m, VERSION, (v) => v + 1n), FRAGMENTS, (b) => build(fragment(parse(b))), 0),
      [997, 0, 5n],
    ]);
  const staged = path.join(view, `${name(to)}#1`);
  fs.writeFileSync(staged, written, { flag: "wx" });
  fs.linkSync(staged, path.join(view, name(to)));
  fs.unlinkSync(staged);

  const stored = fields(newest(g.storage("feature"))),
    storedFragment = first(stored, FRAGMENTS),
    storedFile = first(storedFragment, FILES);
  assert.deepEqual(values(stored, 999), ["keep me"]);
  assert.deepEqual(values(stored, 997), [5n]);
  assert.deepEqual(values(storedFragment, 99), ["of a fragment"]);
  assert.deepEqual(values(storedFile, 55), [7n]);
  const base = values(first(first(was, FRAGMENTS), FILES), BASE_ID);
  assert.equal(base.length, 1, "the fragment lies in main's storage");
  assert.deepEqual(values(storedFile, BASE_ID), base, "and its base path is back");
  assert.ok(fs.readFileSync(path.join(view, name(to))).equals(written), "the reader of the mount sees what was written");
  await g.m.unmount(); // and once more from what is stored
  g.m = await mount(g.w, g.ds);
  assert.ok(fs.readFileSync(path.join(g.m.tree("feature", "_versions"), name(to))).equals(written));
  expectRows(await stock[engine].read(g.ds, "feature"), FEATURE, "storage");
  expectRows(await stock[engine].read(g.m.table("feature"), "main"), FEATURE, "mount");
});

onEach("C30 unknown feature flags: shown when only writers must know them, and written by nobody", async (t, engine) => {
  const g = await open(workspace(t), engine, "writer_flag");
  await checkTip(g, "feature", FEATURE);
  await stops(g, "main", "feature", "EOPNOTSUPP");
  await stock[engine].op(g.ds, "main", "add", { rows: rows(200, 1, "m") });
  await stops(g, "feature", "main", "EOPNOTSUPP");
  const before = snapshot(g.root);
  await assert.rejects(stock[engine].op(g.m.table("feature"), "main", "add", { rows: rows(900, 1) }));
  const view = g.m.tree("feature", "_versions"),
    to = tip(g.storage("feature")) + 1,
    staged = path.join(view, `${name(to)}#1`),
    last = fs.readFileSync(path.join(view, name(to - 1)));
  assert.ok(values(fields(last), WRITER_FLAGS)[0] & (1n << 40n), "the view says what the storage says");
  for (const flags of [(v) => v, (v) => v & 63n]) {
    const next = remade(last, (m) => edit(edit(m, VERSION, (v) => v + 1n), WRITER_FLAGS, flags));
    fs.writeFileSync(staged, next, { flag: "wx" });
    assert.equal(errnoOf(() => fs.linkSync(staged, path.join(view, name(to)))), "ENOTSUP"); // so node calls EOPNOTSUPP
    fs.unlinkSync(staged);
  }
  const leftover = /^new: .*\/(data|_transactions)\//; // an engine may find out only when it commits
  assert.deepEqual(difference(before, snapshot(g.root)).filter((line) => !leftover.test(line)), []);
});
