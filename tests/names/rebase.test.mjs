// SPDX-License-Identifier: Apache-2.0
// .rebase: a branch's own commits on another version, by the same name; what was open goes on, the old line is kept.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load, manifests, tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { checkManifest } from "../harness/invariants.mjs";
import { gc } from "../harness/keep.mjs";
import { json, listed, refFile, settled, works } from "../harness/names.mjs";
import { mount } from "../harness/mount.mjs";
import { run } from "../harness/proc.mjs";
import { OVERLAP, changed, expectRows, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkThenUnmount, checkTip, control, merges, mounted, onEach } from "../harness/tip.mjs";
import { fails, scratch, withOps } from "../harness/verbs.mjs";
import { ENGINES, LANCEFS, difference, snapshot } from "../harness/workspace.mjs";

const said = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text}`;

// `echo line > tree/branch/.rebase` must come through with this result; what then stands there is checked. The answer.
async function rebases(g, branch, line, result = "rebased") {
  const before = { tip: tip(g.storage(branch)), ids: json(refFile(g, branch)).identifier.version_mapping },
    storage = snapshot(g.root),
    r = await ctl(control(g, branch, ".rebase"), line);
  assert.equal(r.code, 0, `echo '${line}' > tree/${branch}/.rebase: ${said(r)}\n${g.m.log()}`);
  assert.equal(r.answer.result, result, said(r));
  if (result === "up-to-date" || result === "dry-run") {
    assert.deepEqual(difference(storage, snapshot(g.root)), [], `${result} changes nothing`);
    return r.answer;
  }
  moved(g, branch, before, r.answer);
  return r.answer;
}
function moved(g, branch, before, answer) {
  const m = checkManifest(g.storage(branch), branch),
    now = tip(g.storage(branch));
  assert.equal(Number(answer.version), now);
  assert.equal(answer.transaction, m.transaction.uuid);
  assert.ok(now > before.tip, `version ${now} is newer than any of the old line's, ${before.tip}`);
  assert.ok(manifests(g.storage(branch)).some((x) => x.version === before.tip + 1), "no writer can take the old line's next number");
  for (const { version } of manifests(g.storage(branch))) assert.equal(load(g.storage(branch), version).branch, branch);
  const line = before.ids.at(-1)[1];
  assert.equal(answer["old-line"], `_lancefs/lines/${line}`);
  assert.notEqual(json(refFile(g, branch)).identifier.version_mapping.at(-1)[1], line, "it is another line");
  assert.equal(tip(path.join(g.ds, "_lancefs/lines", line)), before.tip, "the old line is kept");
  settled(g);
}
async function undoes(g, branch, line = "steps=1") {
  const before = { tip: tip(g.storage(branch)), ids: json(refFile(g, branch)).identifier.version_mapping },
    r = await ctl(control(g, branch, ".undo"), line);
  assert.equal(r.code, 0, `.undo: ${said(r)}\n${g.m.log()}`);
  assert.equal(r.answer.result, "undone", said(r));
  moved(g, branch, before, r.answer);
  return r.answer;
}
const rebaseFails = (g, branch, line, errno, result) => fails(g, ".rebase", branch, line, errno, result);

async function clean(g) {
  const r = await run(path.join(path.dirname(LANCEFS), "fsck.lancefs"), [g.ds]);
  assert.equal(r.code, 0, r.stdout);
  assert.match(r.stdout, /^result: clean$/m);
}

// overlap_deletes: feature's commits (one append, two deletes) on main's tip are what merging it would give.
const { main: MAIN, feature: FEATURE, union: UNION } = OVERLAP;

onEach("each commit on the new base, for both engines, in the storage and through the mount; then stock goes on", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    fork = json(refFile(g, "feature")).parentVersion,
    own = tip(g.storage("feature")) - fork,
    main = tip(g.ds);
  const answer = await rebases(g, "feature", "main");
  assert.equal(answer.source, `feature@${fork + own}`);
  assert.equal(answer.onto, `main@${main}`);
  assert.equal(answer.versions, `${main + 1}..${main + own}`);
  assert.equal(answer.steps.length, own);
  await listed(g, { feature: ["main", main] });
  await checkTip(g, "feature", UNION);
  await checkTip(g, "main", MAIN);
  await clean(g);
  let now = UNION;
  for (const [i, e] of ENGINES.entries()) {
    await stock[e].op(g.ds, "feature", "add", { rows: rows(8000 + i, 1) });
    await stock[e].op(g.ds, "feature", "delete", { where: `id = ${30 + i}` });
    await stock[e].op(g.ds, "feature", "update", { where: `id = ${40 + i}`, values: { v: "up" } });
    now = [...changed(without(now, 30 + i), 40 + i, { v: "up" }), ...rows(8000 + i, 1)];
  }
  await checkTip(g, "feature", now);
  for (const e of ENGINES) await stock[e].op(g.ds, "feature", "optimize").then(() => stock[e].op(g.ds, "feature", "clean"));
  await checkTip(g, "feature", now);
  await merges(g, "main", "feature", ["fast-forward", "merged"]);
  await clean(g);
  await checkThenUnmount(g, { main: now, feature: now });
});

onEach("squash is one version, a dry run none; a message goes with it", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    main = tip(g.ds);
  const dry = await rebases(g, "feature", "main dry-run", "dry-run");
  assert.equal(dry["would-be"], "rebased");
  assert.equal(dry.steps.length, tip(g.storage("feature")) - json(refFile(g, "feature")).parentVersion);
  const answer = await rebases(g, "feature", 'main squash message="one of all" property.k=v');
  assert.equal(answer.versions, `${main + 1}`);
  assert.equal(answer.steps.length, 1);
  const m = load(g.storage("feature"));
  assert.equal(m.transaction.properties.k, "v");
  assert.equal(m.transaction.properties.__lance_commit_message, "one of all");
  await checkThenUnmount(g, { feature: UNION, main: MAIN });
});

onEach("undo goes back to the old line, rows and lineage, and the rebase can be made again", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    ref = json(refFile(g, "feature"));
  await rebases(g, "feature", "main");
  const dry = await ctl(control(g, "feature", ".undo"), "dry-run");
  assert.equal(dry.answer["would-be"], "undone", said(dry));
  await checkTip(g, "feature", UNION);
  await undoes(g, "feature");
  const { createAt, ...back } = json(refFile(g, "feature")),
    { createAt: _, ...was } = ref;
  assert.deepEqual(back, was, "its ref file");
  await checkTip(g, "feature", FEATURE);
  await clean(g);
  await stock[engine].op(g.ds, "feature", "add", { rows: rows(8000, 1) });
  await rebases(g, "feature", "main");
  await checkTip(g, "feature", [...UNION, ...rows(8000, 1)]);
  await undoes(g, "feature");
  await merges(g, "main", "feature");
  await clean(g);
  await checkThenUnmount(g, { feature: [...FEATURE, ...rows(8000, 1)], main: [...UNION, ...rows(8000, 1)] });
});

onEach("a merge on the new line that was undone is nothing: undo goes on to the rebase; what else was committed keeps it", async (t, engine) => {
  const g = withOps(await mounted(t, "overlap_deletes", engine));
  await rebases(g, "feature", "main");
  await g.op("main", "add", { rows: rows(7000, 2) });
  await g.op("main", "delete", { where: "id = 250" });
  for (let i = 0; i < 2; i++) {
    await merges(g, "feature", "main", ["merged", "fast-forward"]);
    await checkStorage(g, "feature", [...without(UNION, 250), ...rows(7000, 2)]);
    const r = await ctl(control(g, "feature", ".undo"), "steps=1"); // of the merge
    assert.deepEqual([r.code, r.answer.result], [0, "merged"], said(r));
    await checkStorage(g, "feature", UNION);
  }
  await fails(g, ".undo", "feature", "steps=2", "EINVAL");
  await undoes(g, "feature");
  await checkTip(g, "feature", FEATURE);
  await clean(g);
  // and again, but with a commit that stays
  await rebases(g, "feature", "main");
  const main = [...without(UNION, 250), ...rows(7000, 2)];
  await checkStorage(g, "feature", main);
  await g.op("main", "add", { rows: rows(7100, 1) });
  await merges(g, "feature", "main", ["merged", "fast-forward"]);
  await g.op("feature", "delete", { where: "id = 7000" });
  await g.op("feature", "restore", { version: Number(tip(g.storage("feature"))) - 1 });
  assert.equal((await ctl(control(g, "feature", ".undo"), "steps=1")).code, 0); // the merge
  await checkStorage(g, "feature", main);
  const answer = await fails(g, ".undo", "feature", "steps=1", "EOPNOTSUPP");
  assert.match(answer.text, /was rebased, and other commits were made since/);
  await checkThenUnmount(g, { feature: main });
});

onEach(".gc: the old line stays while it is young, then goes, and undo says so", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  const { "old-line": line } = await rebases(g, "feature", "main"),
    data = path.join(g.ds, line, "data"),
    held = fs.readdirSync(data).length;
  assert.ok(held > 0);
  await gc(g, "older-than=1h");
  assert.equal(fs.readdirSync(data).length, held);
  await undoes(g, "feature");
  await checkTip(g, "feature", FEATURE);
  const again = await rebases(g, "feature", "main");
  const swept = await gc(g);
  assert.ok(swept.lines.files > 0, swept.text);
  await checkTip(g, "feature", UNION);
  await clean(g);
  assert.equal((await ctl(control(g, "feature", ".undo"), "steps=1")).errno, "ENODATA");
  assert.ok(!fs.existsSync(path.join(g.ds, again["old-line"], "data")) || fs.readdirSync(path.join(g.ds, again["old-line"], "data")).length === 0);
  await stock[engine].op(g.ds, "main", "add", { rows: rows(8000, 1) });
  await merges(g, "feature", "main", ["merged", "fast-forward"]);
  await merges(g, "main", "feature", ["merged", "fast-forward"]);
  await checkThenUnmount(g, { feature: [...UNION, ...rows(8000, 1)], main: [...UNION, ...rows(8000, 1)] });
});

onEach("whoever has the old version open reads it on, in the storage and through the mount; .undo and another rebase too", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    readers = [];
  for (const e of ENGINES) readers.push(await stock[e].keep(g.ds, "feature"), await stock[e].keep(g.m.tree("feature")));
  const file = fs.openSync(path.join(g.m.tree("feature", "data"), fs.readdirSync(path.join(g.storage("feature"), "data"))[0]), "r");
  const bytes = fs.readFileSync(file);
  for (const step of [() => rebases(g, "feature", "main"), () => undoes(g, "feature"), () => rebases(g, "feature", "main squash")]) {
    await step();
    for (const [i, r] of readers.entries()) expectRows(await r.read(), FEATURE, `reader ${i}`);
    const again = Buffer.alloc(bytes.length);
    fs.readSync(file, again, 0, bytes.length, 0);
    assert.ok(bytes.equals(again));
  }
  fs.closeSync(file);
  for (const r of readers) await r.close();
  await checkThenUnmount(g, { feature: UNION });
});

onEach("through the mount also what the old version had of a parent that the new line does not know", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("s");
  await g.op("s", "delete", { where: "id = 3" });
  await g.op("s", "index", { column: "id" });
  await g.op("main", "fork", { name: "f", from: "s" });
  await g.op("f", "add", { rows: rows(100, 1) });
  await g.op("main", "delete", { where: "id = 4" });
  const f = [...without(rows(0, 20), 3), ...rows(100, 1)],
    readers = [];
  for (const e of ENGINES) readers.push(await stock[e].keep(g.m.tree("f")));
  await rebases(g, "f", "main");
  for (const r of readers) expectRows(await r.read(), f, "a reader of the old version");
  for (const r of readers) await r.close();
  await checkTip(g, "f", without(f, 4));
  await clean(g);
  await checkThenUnmount(g, { f: without(f, 4), s: without(rows(0, 20), 3) });
});

onEach("a stock writer that has the old line open is told, or comes through right; nothing is lost", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  const WRITES = {
    add: [{ rows: rows(8100, 1) }, (now) => [...now, ...rows(8100, 1)]],
    delete: [{ where: "id = 1001" }, (now) => without(now, 1001)],
    update: [{ where: "id = 1002", values: { v: "up" } }, (now) => changed(now, 1002, { v: "up" })],
    optimize: [{}, (now) => now],
    index: [{ column: "n" }, (now) => now],
  };
  for (const line of ["main squash"])
    for (const [what, [args, after]] of Object.entries(WRITES)) {
      const writer = await stock[engine].keep(g.ds, "feature");
      await rebases(g, "feature", line);
      const r = await writer.op(what, args).then(
        () => "came through",
        (e) => e.message,
      );
      const now = r === "came through" ? after(UNION) : UNION;
      if (r !== "came through") assert.match(r, /conflict|restore|retry/i, what);
      await checkTip(g, "feature", now);
      await writer.close();
      t.diagnostic(`${what}: ${/\w+ transaction is incompatible[^.,]*/.exec(r)?.[0] ?? r}`);
      await g.m.unmount();
      await g.reset();
      g.m = await mount(g.w, g.ds);
    }
});

onEach("the new base is many versions ahead, or behind: whoever has the old line open is told all the same", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10)),
    tell = async (branch, line, expected) => {
      const writers = [];
      for (const e of ENGINES) writers.push(await stock[e].keep(g.ds, branch));
      await rebases(g, branch, line);
      for (const w of writers) {
        await assert.rejects(w.op("delete", { where: "id = 7" }), `a delete by ${ENGINES[writers.indexOf(w)]}`);
        await assert.rejects(w.op("add", { rows: rows(900, 1) }), `an append by ${ENGINES[writers.indexOf(w)]}`);
        await w.close();
      }
      await checkTip(g, branch, expected);
      await clean(g);
    };
  await g.fork("ahead", "behind");
  await g.op("ahead", "add", { rows: rows(100, 1) });
  for (let i = 0; i < 6; i++) await g.op("main", "add", { rows: rows(200 + i, 1) });
  for (let i = 0; i < 6; i++) await g.op("behind", "add", { rows: rows(300 + i, 1) });
  await tell("ahead", "main", [...rows(0, 10), ...rows(100, 1), ...rows(200, 6)]);
  await tell("behind", "main@2 squash", [...rows(0, 10), ...rows(200, 1), ...rows(300, 6)]);
  await g.m.unmount();
});

onEach("a stock writer commits all the while: every row of it is there in the end", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    other = ENGINES.find((e) => e !== engine);
  let made = 0,
    begun;
  const first = new Promise((resolve) => (begun = resolve));
  const writer = (async () => {
    for (let i = 0; i < 60; i++) {
      await stock[engine].op(g.ds, "feature", "add", { rows: rows(8000 + i, 1) }).then(
        () => made++,
        (e) => assert.match(e.message, /conflict|restore|not found|no such file/i),
      );
      begun();
    }
  })();
  await first;
  const answers = [];
  for (let i = 0; i < 3; i++) {
    answers.push(await ctl(control(g, "feature", ".rebase"), "main"));
    await stock[other].op(g.ds, "main", "add", { rows: rows(9000 + i, 1) });
  }
  await writer;
  for (const r of answers) assert.ok(r.code === 0 || r.errno === "EAGAIN", said(r));
  t.diagnostic(answers.map((r) => `${r.answer.result}${r.answer.meanwhile ? ` with ${r.answer.meanwhile}` : ""}`).join(", "));
  await rebases(g, "feature", "main");
  const { rows: found } = await stock[other].read(g.ds, "feature"),
    ids = found.map((r) => r[0]);
  assert.equal(ids.filter((id) => id >= 8000 && id < 9000).length, made, "every commit that came through, once");
  for (let i = 0; i < 3; i++) assert.ok(ids.includes(9000 + i));
  assert.equal(new Set(ids).size, ids.length, "no row twice");
  assert.equal(ids.length, UNION.length + made + 3);
  await clean(g);
  await g.m.unmount();
});

onEach("a conflict, a refusal, a bad word: nothing changes, and the answer says where", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 20));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("f", "update", { where: "id = 7", values: { v: "theirs" } });
  await g.op("main", "update", { where: "id = 7", values: { v: "ours" } });
  const said = await rebaseFails(g, "f", "main", "ECANCELED", "conflict");
  assert.match(said.step, /^f@3, 2 of 2$/);
  assert.match(said.text, /unit: row 7 of fragment 0/);
  await rebaseFails(g, "f", "main dry-run", "ECANCELED", "conflict");
  await rebaseFails(g, "main", "f", "EINVAL");
  await rebaseFails(g, "f", "nobody", "ENOENT");
  await rebaseFails(g, "f", "main@99", "ENOENT");
  await rebaseFails(g, "f", "tags/none", "ENOENT");
  await rebaseFails(g, "f", "main f", "EINVAL");
  await rebaseFails(g, "f", "main mode=copy", "EINVAL");
  await rebaseFails(g, "f", "main ff=only", "EINVAL");
  await rebaseFails(g, "f", "main expect=2", "ESTALE");
  await works(g, "echo child > tree/f/.branch");
  assert.match((await rebaseFails(g, "f", "main strategy=source-wins", "EBUSY")).text, /branch child \(f@3\)/);
  await works(g, "rmdir tree/child; echo keep > tree/f/.tag");
  assert.match((await rebaseFails(g, "f", "main strategy=source-wins", "EBUSY")).text, /tag keep \(f@3\)/);
  await works(g, "rm tags/keep");
  await rebases(g, "f", "main strategy=source-wins expect=3");
  const base = without(rows(0, 20), 7);
  await checkTip(g, "f", [...base, { id: 7, v: "theirs", n: 7 }, ...rows(100, 2, "f")]);
  await undoes(g, "f");
  await rebases(g, "f", "main rows=dest-wins");
  await checkThenUnmount(g, { f: [...base, { id: 7, v: "ours", n: 7 }, ...rows(100, 2, "f")] });
});

onEach("nothing of its own: fast-forward; based there already: up to date", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await rebases(g, "f", "main", "up-to-date");
  await rebases(g, "f", "main@1", "up-to-date");
  await g.op("main", "add", { rows: rows(100, 1) });
  await rebases(g, "f", "main", "fast-forward");
  await listed(g, { f: ["main", 3] });
  await checkTip(g, "f", [...rows(0, 20), ...rows(100, 1)]);
  await rebases(g, "f", "main", "up-to-date");
  await merges(g, "main", "f", ["up-to-date"]);
  await g.op("f", "add", { rows: rows(200, 1) });
  await merges(g, "main", "f", ["merged", "fast-forward"]);
  await g.op("main", "delete", { where: "id = 3" });
  await rebases(g, "f", "main", "fast-forward");
  await clean(g);
  await checkThenUnmount(g, { f: [...without(rows(0, 20), 3), ...rows(100, 1), ...rows(200, 1)] });
});

onEach("onto a tag, a version, a sibling, a branch of a branch; twice in a row", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 20));
  await g.fork("f", "s");
  await g.op("f", "add", { rows: rows(100, 1, "f") });
  await g.op("f", "delete", { where: "id = 1" });
  await g.op("s", "add", { rows: rows(200, 1, "s") });
  await g.op("s", "delete", { where: "id = 2" });
  await g.op("main", "add", { rows: rows(300, 1, "m") });
  await g.op("main", "delete", { where: "id = 3" });
  await g.op("s", "fork", { name: "s2", from: "s" }).catch(() => g.op("main", "fork", { name: "s2", from: "s" }));
  await g.op("s2", "add", { rows: rows(400, 1, "t") });
  await works(g, "echo 'v2 from=2' > tree/main/.tag");
  const f = rows(100, 1, "f"),
    s = rows(200, 1, "s"),
    m = rows(300, 1, "m"),
    s2 = rows(400, 1, "t");
  await rebases(g, "f", "tags/v2");
  await checkTip(g, "f", [...without(rows(0, 20), 1), ...f, ...m]);
  await rebases(g, "f", "main@3");
  await checkTip(g, "f", [...without(rows(0, 20), 1, 3), ...f, ...m]);
  await rebases(g, "f", "s");
  await checkTip(g, "f", [...without(rows(0, 20), 1, 2, 3), ...f, ...m, ...s]);
  await rebases(g, "f", "s2");
  await listed(g, { f: ["s2", tip(g.storage("s2"))], s: ["main", 1], s2: ["s", tip(g.storage("s"))] });
  await checkTip(g, "f", [...without(rows(0, 20), 1, 2, 3), ...f, ...m, ...s, ...s2]);
  await clean(g);
  for (let i = 0; i < 2; i++) await undoes(g, "f");
  await checkTip(g, "f", [...without(rows(0, 20), 1, 3), ...f, ...m]);
  await rebases(g, "s2", "main"); /* a branch of a branch: what it held of its parent comes along */
  await checkTip(g, "s2", [...without(rows(0, 20), 2, 3), ...m, ...s, ...s2]);
  await listed(g, { f: ["main", 3], s: ["main", 1], s2: ["main", 3] });
  await checkThenUnmount(g, { s: [...without(rows(0, 20), 2), ...s] });
});

onEach("after merges to it and from it, in both directions; merged on afterwards, and nothing comes twice", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 20));
  await g.fork("f", "x");
  await g.op("f", "add", { rows: rows(100, 1, "f") });
  await g.op("x", "add", { rows: rows(200, 1, "x") });
  await g.op("x", "delete", { where: "id = 2" });
  await merges(g, "main", "f", ["merged", "fast-forward"]); /* from it */
  await merges(g, "f", "x"); /* and to it */
  await merges(g, "x", "f", ["merged", "fast-forward"]);
  await g.op("main", "add", { rows: rows(300, 1, "m") });
  await merges(g, "f", "main"); /* of the new base */
  await g.op("f", "delete", { where: "id = 4" });
  await g.op("main", "delete", { where: "id = 5" });
  await rebases(g, "f", "main");
  const f = [...without(rows(0, 20), 2, 4, 5), ...rows(100, 1, "f"), ...rows(200, 1, "x"), ...rows(300, 1, "m")];
  await checkTip(g, "f", f);
  await clean(g);
  await g.op("x", "add", { rows: rows(210, 1, "x") });
  await merges(g, "f", "x");
  await checkTip(g, "f", [...f, ...rows(210, 1, "x")]);
  await merges(g, "main", "f", ["merged", "fast-forward"]);
  await merges(g, "x", "f", ["merged", "fast-forward"]);
  await clean(g);
  await checkThenUnmount(g, { f: [...f, ...rows(210, 1, "x")], main: [...f, ...rows(210, 1, "x")], x: [...f, ...rows(210, 1, "x")] });
});

onEach("stable row ids: what the new base has given stays, no two rows have one", async (t, engine) => {
  const g = withOps(await mounted(t, "stable_row_ids", engine)),
    all = [...without(rows(0, 10), 2, 5, 9), { id: 2, v: "ff", n: 2 }, { id: 5, v: "mm", n: 5 }, ...rows(100, 3, "f"), ...rows(200, 4, "m")],
    ids = async (e, branch) => new Map((await stock[e].op(g.ds, branch, "rowIds", {})).value),
    main = await ids("lance12", "main");
  await rebases(g, "feature", "main");
  await checkTip(g, "feature", all);
  for (const e of ENGINES) {
    const now = await ids(e, "feature");
    assert.equal(new Set(now.values()).size, all.length, "no id twice");
    for (const [id, rowId] of main) if (now.has(id)) assert.equal(now.get(id), rowId, `row ${id}`);
    await stock[e].op(g.ds, "feature", "update", { where: "id = 1", values: { v: e } });
  }
  await clean(g);
  await checkThenUnmount(g, { feature: changed(all, 1, { v: ENGINES.at(-1) }) });
});

onEach("a compaction, and commits that were cleaned away, come by squash alone; indexes come along", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("f", "delete", { where: "id = 1" });
  await g.op("f", "optimize");
  await g.op("main", "add", { rows: rows(200, 1, "m") });
  const f = [...without(rows(0, 20), 1), ...rows(100, 2, "f")],
    all = [...f, ...rows(200, 1, "m")];
  const why = await rebaseFails(g, "f", "main", "EOPNOTSUPP");
  assert.match(why.error, /f@\d+ is a compaction, which cannot be replayed by itself: add squash/);
  await rebases(g, "f", "main squash");
  await checkTip(g, "f", all);
  await undoes(g, "f");
  await g.op("f", "index", { column: "id" });
  await g.op("f", "clean");
  await rebaseFails(g, "f", "main", ["ENODATA", "EOPNOTSUPP"]);
  await rebases(g, "f", "main squash");
  await checkTip(g, "f", all);
  await clean(g);
  await checkThenUnmount(g, { f: all });
});

test("C33 chain: what has children is refused, and every branch reads as before", async (t) => {
  const g = await mounted(t, "chain", "lance12"),
    sub = [...without(rows(0, 10), 1, 100), ...rows(101, 1, "f"), ...rows(200, 2, "s")];
  await stock.lance12.op(g.ds, "main", "add", { rows: rows(500, 1) });
  assert.match((await rebaseFails(g, "feature", "main", "EBUSY")).text, /branch exp\/sub .*\n.*branch idle/);
  await rebases(g, "old", "main");
  await rebases(g, "exp/sub/deep", "main");
  await checkTip(g, "exp/sub", sub);
  await checkTip(g, "exp/sub/deep", [...without(sub, 6), ...rows(300, 2, "d"), ...rows(10, 1, "m"), ...rows(500, 1)]);
  await checkTip(g, "old", [...rows(0, 10), ...rows(10, 1, "m"), ...rows(400, 1, "o"), ...rows(500, 1)]);
  await works(g, "rmdir tree/idle; mv tree/exp/sub/deep tree/deep"); /* a rebased branch is renamed, and goes back */
  await undoes(g, "deep");
  await checkTip(g, "deep", [...without(sub, 6), ...rows(300, 2, "d")]);
  await clean(g);
  await checkThenUnmount(g, { "exp/sub": sub });
});

test("a branch in whose directory others lie", async (t) => {
  const g = await scratch(t, "lance12", rows(0, 5));
  await g.fork("a", "a/b", "a/b/c");
  for (const [i, name] of ["a", "a/b", "a/b/c"].entries()) await g.op(name, "add", { rows: rows(100 + i, 1) });
  await g.op("main", "add", { rows: rows(200, 1) });
  await rebases(g, "a", "main");
  await rebases(g, "a/b/c", "main");
  await checkThenUnmount(g, {
    a: [...rows(0, 5), ...rows(100, 1), ...rows(200, 1)],
    "a/b": [...rows(0, 5), ...rows(101, 1)],
    "a/b/c": [...rows(0, 5), ...rows(102, 1), ...rows(200, 1)],
  });
});
