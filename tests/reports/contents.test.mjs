// SPDX-License-Identifier: Apache-2.0
// What the reports say, against stock engines, an independent decoder of manifests, and arithmetic.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { configure } from "../interop/configure.mjs";
import { load, tip, versions } from "../interop/manifest.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { merges, mounted, onEach } from "../harness/tip.mjs";
import { scratch, undo, withOps } from "../harness/verbs.mjs";
import { read, report, status, textOf, unchanged } from "../harness/reports.mjs";

const live = (f) => f.rows - (f.deletion?.deleted ?? 0);
const sum = (list) => list.reduce((a, b) => a + b, 0);

// What a version changed against the one before, by the decoder.
function changes(dir, version, beforeDir = dir, before = version - 1) {
  const now = load(dir, version).fragments,
    was = before ? load(beforeDir, before).fragments : [],
    at = (list, id) => list.find((f) => f.id === id);
  const key = (f) => JSON.stringify([f.files.map((x) => [x.path, x.fields]), f.deletion?.path]);
  const pairs = now.map((f) => [at(was, f.id), f]);
  const added = pairs.filter(([b]) => !b).length,
    removed = was.filter((f) => !at(now, f.id)),
    changed = pairs.filter(([b, f]) => b && key(b) !== key(f));
  const plus = sum(pairs.map(([b, f]) => Math.max(0, live(f) - (b ? live(b) : 0)))),
    minus = sum(pairs.map(([b, f]) => Math.max(0, (b ? live(b) : 0) - live(f)))) + sum(removed.map(live));
  return [`+${added} -${removed.length} ~${changed.length}`, `+${plus} -${minus}`];
}

onEach(".log: each version of the branch and of its parents up to the forks, newest first", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  const { rows: log } = await unchanged(g, () => read(g, "exp/sub/deep", ".log"));
  // main 1, 2; feature 2 (its birth), 3, 4; exp/sub 4 (birth), 5, 6; deep 6 (birth), 7, 8
  const expected = [
    ["exp/sub/deep", 8], ["exp/sub/deep", 7], ["exp/sub/deep", 6], ["exp/sub", 6], ["exp/sub", 5], ["exp/sub", 4],
    ["feature", 4], ["feature", 3], ["feature", 2], ["main", 2], ["main", 1],
  ];
  assert.deepEqual(log.map((r) => [r.branch, Number(r.version)]), expected);
  for (const r of log) {
    const dir = g.storage(r.branch),
      m = load(dir, Number(r.version)),
      birth = m.transaction.op === "clone";
    assert.equal(r.operation, birth ? "branch" : m.transaction.op);
    const time = m.tree.timestamp[0],
      ms = Math.floor(Number(time.nanos?.[0] ?? 0) / 1e6);
    assert.equal(r.time, new Date(Number(time.seconds[0]) * 1000 + ms).toISOString());
    if (birth) assert.deepEqual([r.fragments, r.rows], ["+0 -0 ~0", "+0 -0"]);
    else assert.deepEqual([r.fragments, r.rows], changes(dir, Number(r.version)), `${r.branch}@${r.version}`);
  }
  assert.deepEqual(log.filter((r) => r.from).map((r) => r.from), ["exp/sub@6", "feature@4", "main@2"]);
});

onEach(".log and .log.graph: a merge names its source and takes its lane in", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  const message = 'a\ttab, \u001b[31mred, ü';
  await merges(g, "main", `feature message="${message}"`);
  const first = (await read(g, "main", ".log")).rows[0],
    m = load(g.ds);
  assert.deepEqual([first.operation, first.from, Number(first.version)], ["merge", "feature@6", tip(g.ds)]);
  assert.equal(m.transaction.properties.__lance_commit_message, message);
  assert.equal(first.message, message, "escaped, and so whole");
  assert.deepEqual([first.fragments, first.rows], changes(g.ds, m.version));
  const graph = (await textOf(report(g, "main", ".log.graph"))).trimEnd().split("\n").slice(1);
  const drawn = graph.map((l) => l.split("\t").slice(0, 3));
  const at = (branch, version) => drawn.find((r) => r[1] === String(version) && r[2] === branch)?.[0];
  assert.equal(drawn[0][0], "*");
  assert.deepEqual(drawn[1], ["|\\"]);
  for (const v of [4, 5, 6]) assert.equal(at("main", v), "* |", `main@${v}`);
  for (const v of [3, 4, 5, 6]) assert.equal(at("feature", v), "| *", `feature@${v}`);
  assert.equal(at("main", 1), "*");
  assert.ok(drawn.some((r) => r[0] === "|/" && r.length === 1), "the fork");
  // every version that either side has stands there once
  const all = [...versions(g.ds).map((v) => `main@${v}`), ...versions(g.storage("feature")).map((v) => `feature@${v}`)];
  assert.deepEqual(drawn.filter((r) => r.length > 1).map((r) => `${r[2]}@${r[1]}`).sort(), all.sort());
});

onEach(".log: what was cleaned away is one line, and the history before it goes on", async (t, engine) => {
  const g = await mounted(t, "cleaned", engine);
  const { rows: log } = await unchanged(g, () => read(g, "late", ".log"));
  const there = new Set(["late", "main"].flatMap((b) => versions(g.storage(b)).map((v) => `${b}@${v}`)));
  for (const r of log.filter((x) => x.operation !== "gone")) assert.ok(there.has(`${r.branch}@${r.version}`), r.version);
  const gone = log.filter((r) => r.operation === "gone");
  assert.ok(gone.length > 0, "something was cleaned away");
  for (const r of gone) {
    const [from, to] = r.version.includes("..") ? r.version.split("..").map(Number) : [Number(r.version), Number(r.version)];
    for (let v = from; v <= to; v++) assert.ok(!there.has(`${r.branch}@${v}`), `${r.branch}@${v} is there`);
    assert.deepEqual([r.time, r.fragments, r.rows, r.message], [undefined, undefined, undefined, undefined]);
  }
  const graph = await textOf(report(g, "late", ".log.graph"));
  assert.match(graph, /\tgone\t/);
});

onEach(".status: versions, rows and sizes as stock and the decoder count them", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  for (const b of ["main", "feature", "exp/sub", "exp/sub/deep", "old", "idle"]) {
    const s = await unchanged(g, () => status(g, b)),
      m = load(g.storage(b)),
      answer = await stock[engine].read(g.ds, b);
    assert.equal(Number(s.version), answer.version, b);
    assert.equal(Number(s.rows), answer.count, b);
    assert.equal(Number(s.fragments), m.fragments.length);
    assert.equal(Number(s["data-files"]), sum(m.fragments.map((f) => f.files.length)));
    assert.equal(Number(s["data-bytes"]), sum(m.fragments.flatMap((f) => f.files.map((x) => x.size))));
    assert.equal(Number(s["deleted-rows"]), sum(m.fragments.map((f) => f.deletion?.deleted ?? 0)));
    assert.equal(s.storage, g.storage(b));
    assert.equal(s.format, m.dataFormat);
  }
  // feature left main at 2 and has 3, 4; main went on to 3
  let s = await status(g, "feature");
  assert.deepEqual([s.parent, s["parent-version"], s.ahead, s.behind], ["main@2", "3", "2", "1"]);
  assert.deepEqual([s["into-parent"], s["from-parent"], s["last-merge"]], ["merge", "merge", undefined]);
  s = await status(g, "exp/sub");
  assert.deepEqual([s.parent, s.ahead, s.behind, s["into-parent"]], ["feature@4", "2", "0", "fast-forward"]);
  s = await status(g, "idle");
  assert.deepEqual([s.ahead, s.behind, s["into-parent"]], ["0", "0", "up-to-date"]);
  await merges(g, "main", "feature");
  s = await status(g, "feature"); // main: 3 and the merge 4 are new, and hold all of feature
  assert.deepEqual([s.ahead, s.behind, s["into-parent"], s["from-parent"]], ["0", "2", "up-to-date", "fast-forward"]);
  const { rows: lines } = await read(g, "main", ".status");
  assert.deepEqual(lines.find((r) => r.key === "last-merge").fields.slice(1, 3), ["4", "feature@4"]);
  await merges(g, "feature", "main", "fast-forward");
  assert.equal((await status(g, "feature"))["last-merge"], "5");
});

onEach("what .status calls a fast-forward is one", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  assert.equal((await status(g, "exp/sub/deep"))["into-parent"], "fast-forward");
  await merges(g, "exp/sub", "exp/sub/deep", "fast-forward");
  assert.equal((await status(g, "exp/sub/deep"))["into-parent"], "up-to-date");
  await merges(g, "exp/sub", "exp/sub/deep", "up-to-date");
});

onEach("after an undo .status has the branch ahead again, and its merge comes through again", async (t, engine) => {
  const g = withOps(await mounted(t, "chain", engine));
  await merges(g, "main", "feature");
  await undo(g, "main", "steps=1");
  const s = await status(g, "feature");
  assert.deepEqual([s.ahead, s["into-parent"]], ["2", "merge"]);
  await merges(g, "main", "feature");
});

onEach(".files and .bases: every file of the tip, where it really lies, as long as it is", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  await merges(g, "main", "exp/sub/deep");
  for (const b of ["main", "exp/sub/deep", "idle"]) {
    const { rows: files } = await unchanged(g, () => read(g, b, ".files")),
      m = load(g.storage(b)),
      rootOf = (base) => (base === undefined ? g.storage(b) : m.bases.find((x) => x.id === base).path);
    const expected = m.fragments.flatMap((f) => [
      ...f.files.map((x) => ["data", f.id, live(f), x.base, path.join(rootOf(x.base), "data", x.path)]),
      ...(f.deletion ? [["deletion", f.id, f.deletion.deleted, f.deletion.base, path.join(rootOf(f.deletion.base), "_deletions", f.deletion.path)]] : []),
    ]);
    const number = (x) => (x === undefined ? undefined : Number(x));
    assert.deepEqual(files.map((r) => [r.kind, number(r.fragment), number(r.rows), number(r.base), r.path]), expected, b);
    for (const r of files) {
      assert.equal(Number(r.bytes), fs.statSync(r.path).size, r.path);
      assert.equal(r.there, "yes");
    }
    const { rows: bases } = await read(g, b, ".bases");
    assert.deepEqual(bases.map((r) => [number(r.id), r.path]), [[undefined, undefined], ...m.bases.map((x) => [x.id, x.path])]);
    for (const r of bases) {
      const own = expected.filter((x) => x[3] === number(r.id));
      assert.equal(Number(r.files), own.length, `${b} base ${r.id}`);
      assert.equal(Number(r.bytes), sum(own.filter((x) => x[0] === "data").map((x) => fs.statSync(x[4]).size)));
      for (const x of own.filter((y) => y[0] === "data")) assert.equal(path.dirname(x[4]), r.data);
    }
  }
});

onEach(".files: a file that is gone is told as gone", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  const { rows: files } = await read(g, "main", ".files");
  fs.rmSync(files[0].path);
  await stock[engine].op(g.ds, "main", "add", { rows: rows(50, 1) }); // the tip moves
  const { rows: now } = await read(g, "main", ".files");
  assert.deepEqual([now[0].path, now[0].there, now[0].bytes], [files[0].path, "no", files[0].bytes]);
});

onEach(".schema: columns by path, with type, nullability and metadata", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 3));
  await g.op("main", "fieldMetadata", { path: "v", metadata: { "a\tb": "x\ny", unit: "m" } });
  const { rows: schema } = await unchanged(g, () => read(g, "main", ".schema")),
    fields = load(g.ds).tree.fields;
  assert.deepEqual(
    schema.map((r) => [r.id, r.column, r.type, r.nullable]),
    fields.map((f) => [f.id?.[0] ?? "0", f.name[0], f.logical_type[0], f.nullable?.[0] === "true" ? "yes" : "no"]),
  );
  const told = schema.find((r) => r.column === "v").metadata;
  for (const pair of ["a\tb=x\ny", "unit=m"]) assert.ok(told.includes(pair), JSON.stringify(told));
  const nested = await mounted(t, "nested_types", engine),
    { rows: deep } = await read(nested, "main", ".schema");
  const byId = new Map(load(nested.ds).tree.fields.map((f) => [Number(f.id?.[0] ?? 0), f]));
  const pathOf = (id) => {
    const f = byId.get(id),
      parent = Number(f.parent_id?.[0] ?? 0);
    return parent === -1 ? f.name[0] : `${pathOf(parent)}.${f.name[0]}`;
  };
  assert.deepEqual(deep.map((r) => r.column), [...byId.keys()].map(pathOf));
});

onEach(".stale: fragments that lack a column, and fragments that an index does not cover", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 4), rows(10, 3));
  assert.deepEqual((await read(g, "main", ".stale")).rows, []);
  await g.fork("feature");
  await g.op("feature", "addColumn", { name: "extra", sql: "n * 2" });
  await g.op("main", "index", { column: "id" });
  await g.op("main", "add", { rows: rows(20, 5) });
  await g.op("main", "delete", { where: "id = 20" });
  const todo = async () =>
    (await unchanged(g, () => read(g, "main", ".stale"))).rows.map((r) => [r.todo, r.name, Number(r.fragment), r.offsets, Number(r.rows)]);
  assert.deepEqual(await todo(), [["index", "id_idx", 2, "0..4", 4]]);
  await merges(g, "main", "feature");
  const now = await todo();
  // what stock reads as null is what is to be backfilled
  const read_ = await stock[engine].read(g.ds, "main"),
    at = read_.columns.indexOf("extra"),
    nulls = read_.rows.filter((r) => r[at] === null).length;
  assert.equal(nulls, 4);
  assert.deepEqual(now.filter((r) => r[0] === "backfill"), [["backfill", "extra", 2, "0..4", 4]]);
  assert.ok(now.some((r) => r[0] === "index" && r[2] === 2));
  await g.op("main", "optimize");
  assert.deepEqual((await todo()).filter((r) => r[0] === "index"), [], "optimize indexed the rest");
});

// The decoder's tree ({ key: [text] }) against JSON, by walking both.
function sameTree(json, tree, where) {
  if (typeof json !== "object" || json === null) return;
  for (const [key, value] of Object.entries(json)) {
    const list = Array.isArray(value) ? value : [value];
    assert.equal(tree[key]?.length, list.length, `${where}.${key}`);
    list.forEach((v, i) => {
      const other = tree[key][i];
      if (typeof v === "object") return sameTree(v, other, `${where}.${key}[${i}]`);
      if (typeof v === "boolean" || typeof v === "number") return assert.equal(String(v), other, `${where}.${key}`);
      const texts = [other, Buffer.from(other, "latin1").toString("utf8"), Buffer.from(other, "latin1").toString("base64")];
      assert.ok(texts.includes(v), `${where}.${key}: ${v} is none of ${texts}`);
    });
  }
  assert.deepEqual(Object.keys(json).sort(), Object.keys(tree).sort(), where);
}

onEach(".manifest.json: complete, exact, and jq reads it", async (t, engine) => {
  const g = await mounted(t, "index_on_branch", engine);
  const wild = { "k\t\n\"\\": "ü\u0001\u2028", big: "18446744073709551615" };
  configure(g.ds, { table: wild });
  for (const b of ["main", "feature"]) {
    const text = await unchanged(g, () => textOf(report(g, b, ".manifest.json"))),
      json = JSON.parse(text),
      m = load(g.storage(b));
    sameTree(json.manifest, m.tree, b);
    sameTree(json.transaction, m.transaction.tree, `${b} transaction`);
    assert.equal(json.indices.indices.length, m.indices.length);
    assert.deepEqual(json.indices.indices.map((i) => Buffer.from(i.uuid.uuid, "base64").toString("hex")), m.indices.map((i) => i.uuid));
    assert.equal(json.file, m.name);
    const jq = await run("jq", ["-r", ".manifest.fragments | length", report(g, b, ".manifest.json")]);
    if (jq.code === 0) assert.equal(Number(jq.stdout), m.fragments.length);
    const d = json.manifest.fragments.find((f) => f.deletion_file)?.deletion_file;
    if (d) assert.equal(String(d.id), m.tree.fragments.find((f) => f.deletion_file).deletion_file[0].id[0], "64 bits, exact");
  }
  const told = Object.fromEntries(JSON.parse(await textOf(report(g, "main", ".manifest.json"))).manifest.table_metadata.map((e) => [e.key, e.value]));
  for (const [k, v] of Object.entries(wild)) assert.equal(told[k], v);
});

onEach("tables without rows, and a branch whose parent is deleted", async (t, engine) => {
  const g = await mounted(t, "whole_fragments", engine, { generated: { name: "blank" } });
  const s = await status(g, "main");
  assert.deepEqual([s.rows, s.fragments, s["data-bytes"]], ["0", "0", "0"]);
  for (const name of [".files", ".stale"]) assert.deepEqual((await read(g, "main", name)).rows, []);
  assert.equal((await read(g, "main", ".diff/feature")).rows.filter((r) => r.class === "fragment").length, 1);

  const h = withOps(await mounted(t, "chain", engine));
  fs.rmSync(path.join(h.ds, "_refs/branches/exp%2Fsub.json")); // stock refuses while the child stands
  const { rows: log } = await read(h, "exp/sub/deep", ".log");
  assert.deepEqual(log.slice(0, 3).map((r) => [r.branch, r.version]), [["exp/sub/deep", "8"], ["exp/sub/deep", "7"], ["exp/sub/deep", "6"]]);
  assert.equal(log[3].operation, "gone");
  const orphan = await status(h, "exp/sub/deep");
  assert.deepEqual([orphan.parent, orphan["parent-version"]], ["exp/sub@6", "deleted"]);
  await textOf(report(h, "exp/sub/deep", ".log.graph"));
});

onEach("a merged branch that was deleted since stays in the graph by what its merge kept", async (t, engine) => {
  const g = withOps(await mounted(t, "overlap_deletes", engine));
  await merges(g, "main", "feature");
  const uuid = load(g.ds).transaction.properties["lancefs.source.line"];
  await g.op("main", "drop", { name: "feature" });
  const { rows: log } = await read(g, "main", ".log");
  assert.deepEqual([log[0].operation, log[0].from], ["merge", "feature@6"]);
  const graph = (await textOf(report(g, "main", ".log.graph"))).split("\n").filter((l) => l.split("\t")[2] === uuid);
  assert.ok(graph.some((l) => l.split("\t")[1] === "6" && !l.includes("\tgone\t")), "the kept base is told");
  assert.ok(graph.some((l) => l.includes("\tgone\t")), "what went with the branch is told as gone");
});
