// SPDX-License-Identifier: Apache-2.0
// The harness itself: its checks must fail where they should, and hold for what stock Lance writes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { build, edit, parse, remade } from "../interop/wire.mjs";
import { load, versionOf } from "../interop/manifest.mjs";
import { parseAnswer } from "./control.mjs";
import { checkManifest, countBitmap } from "./invariants.mjs";
import { run } from "./proc.mjs";
import { changed, expectRows, rows, span, without } from "./rows.mjs";
import { stock } from "./stock.mjs";
import { difference, ENGINES, generate, place, snapshot, workspace } from "./workspace.mjs";

// Each generator's branches as arithmetic has them: what the tests build on.
const TEN = rows(0, 10),
  MAIN_300 = rows(0, 300);
const EXPECTED = {
  overlap_deletes: {
    main: [...without(MAIN_300, span(15, 24), span(250, 259)), ...rows(2000, 2, "m")],
    feature: [...without(MAIN_300, span(10, 19), span(150, 159)), ...rows(1000, 3, "f")],
  },
  delete_vs_update: {
    main: without(changed(rows(0, 100), 12, { v: "main" }), 40),
    d_u: without(rows(0, 100), 12),
    u_d: changed(rows(0, 100), 40, { v: "branch" }),
    u_u: changed(rows(0, 100), 12, { v: "branch" }),
    u_o: changed(rows(0, 100), 70, { v: "branch" }),
  },
  siblings: {
    main: TEN,
    x: changed(TEN, 1, { v: "x" }),
    s: changed(TEN, 2, { v: "s" }),
    t: changed(TEN, 3, { v: "t" }),
    del: without(TEN, 5),
    ins: [...TEN, ...rows(5, 1)],
  },
  chain: {
    main: [...TEN, ...rows(10, 1, "m")],
    feature: [...without(TEN, 1), ...rows(100, 2, "f")],
    "exp/sub/deep": [...without(TEN, 1, 6), ...rows(101, 1, "f"), ...rows(200, 2, "s"), ...rows(300, 2, "d")],
    old: [...rows(0, 5), ...rows(400, 1, "o")],
  },
  whole_fragments: {
    main: without(rows(0, 30), 11, 12, 25),
    gone: without(rows(0, 30), span(10, 19)),
    empty: rows(900, 2, "e"),
  },
  net_zero: { main: without(TEN, 5), addel: TEN, back: TEN, twice: without(TEN, 5), none: TEN },
  stable_row_ids: {
    main: [...changed(TEN, 5, { v: "mm" }), ...rows(200, 4, "m")],
    feature: [...without(changed(TEN, 2, { v: "ff" }), 9), ...rows(100, 3, "f")],
  },
  index_on_branch: {
    main: [...rows(0, 1000), ...rows(2000, 10, "m")],
    feature: [...changed(rows(0, 1000), span(0, 4), { n: -1 }), ...rows(5000, 10, "f")],
  },
  bitmap_deletes: {
    feature: span(0, 199_999)
      .filter((i) => i % 3)
      .map((id) => ({ id })),
  },
  v1_names: { main: rows(0, 12), feature: [...rows(0, 12), ...rows(100, 1, "f")] },
  cleaned: { main: [...without(rows(0, 20), 3), ...rows(20, 5, "m")], early: [...rows(0, 20), ...rows(100, 1, "e")] },
  add_columns: { score: [...rows(0, 100).map((r) => ({ ...r, score: r.n * 2 })), { id: 900, v: "s", n: 1, score: 5 }] },
};
for (const [generator, branches] of Object.entries(EXPECTED)) {
  for (const engine of ENGINES) {
    test(`${generator} by ${engine}: rows as expected for both engines, manifests pass the checks made on ours`, async (t) => {
      const g = await generate(workspace(t), generator, engine);
      for (const [branch, expected] of Object.entries(branches)) {
        for (const e of ENGINES) expectRows(await stock[e].read(g.ds, branch), expected, `${branch}, read by ${e}`);
        checkManifest(g.storage(branch), branch);
      }
    });
  }
}

test("moved, clones, paths, hostile and names are what their first lines say", async (t) => {
  const w = workspace(t),
    moved = await generate(w, "moved", "lance12"),
    clones = await generate(w, "clones", "lance12", { name: "b" });
  assert.equal(fs.existsSync(path.join(moved.root, "before")), false);
  await assert.rejects(stock.lance12.read(path.join(moved.root, "here/t.lance"), "feature"), /Not found/i);
  assert.match(
    load(path.join(moved.root, "copy/t.lance/tree/child"))
      .bases.map((b) => b.path)
      .join(),
    /\/orig\/t\.lance/,
  );
  expectRows(
    await stock.lance12.read(clones.ds, "feature"),
    [...without(MAIN_300, 7, 8), ...rows(1000, 2, "b"), ...rows(2000, 2, "f")],
    "b/feature",
  );
  const hostile = await generate(w, "hostile", "lance10");
  for (const kind of ["deletion_gone", "deletion_half", "deletion_junk"])
    await assert.rejects(stock.lance10.read(path.join(hostile.root, kind, "t.lance"), "feature"), kind);
  assert.equal(
    load(path.join(hostile.root, "deleted_more_than_rows/t.lance/tree/feature")).fragments[0].deletion.deleted,
    999,
  );
  assert.equal((await stock.lance10.read(path.join(hostile.root, "good/t.lance"), "feature")).rows.length, 11);
  const names = await generate(w, "names", "lance12");
  assert.ok(fs.existsSync(path.join(names.ds, "_refs/branches/main%2F.merge.json")));
});

test("expectRows fails for a missing row, a row too many, a wrong value, a row twice, a wrong count", () => {
  const answer = (list, more) => ({
    columns: ["id", "v", "n"],
    rows: list.map((r) => [r.id, r.v, r.n]),
    count: list.length,
    wrong: [],
    ...more,
  });
  const table = rows(0, 5);
  expectRows(answer(table), table, "equal");
  const bad = [
    answer(without(table, 2)),
    answer([...table, ...rows(9, 1)]),
    answer(changed(table, 1, { v: "y" })),
    answer([...table, ...rows(1, 1)]),
    answer(table, { count: 4 }),
    answer(table, { wrong: ["x"] }),
    answer(table, { columns: ["id", "v", "m"] }),
  ];
  for (const a of bad) assert.throws(() => expectRows(a, table, "bad"), assert.AssertionError);
});

test("checkManifest fails for each broken rule", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    dir = g.storage("feature"),
    { file } = load(dir),
    good = fs.readFileSync(file);
  const first = (m, n, fn) => edit(m, n, (b) => build(fn(parse(b))), 0);
  const breaks = {
    "a version that lies": (m) => edit(m, 3, () => 99n),
    "a branch that lies": (m) => edit(m, 20, () => Buffer.from("other")),
    "a flag too few": (m) => edit(m, 9, () => 1n),
    "a flag too many": (m) => edit(m, 10, (v) => v | 8n),
    "max_fragment_id too low": (m) => edit(m, 11, () => 1n),
    "a fragment twice": (m) => [...m, m.find((x) => x[0] === 2)],
    "a base id without an entry": (m) => first(m, 2, (f) => first(f, 2, (d) => edit(d, 7, () => 42n))),
    "a file that is not there": (m) =>
      first(m, 2, (f) => first(f, 2, (d) => edit(d, 1, () => Buffer.from("none.lance")))),
    "a wrong file size": (m) => first(m, 2, (f) => first(f, 2, (d) => edit(d, 6, (v) => v + 1n))),
    "a base path twice": (m) => [...m, m.find((x) => x[0] === 18)],
    "the own directory as a base": (m) => [
      ...m,
      [18, 2, Buffer.concat([Buffer.from([8, 9, 24, 1, 34, Buffer.byteLength(dir)]), Buffer.from(dir)])],
    ],
    "a transaction file of another name": (m) => edit(m, 12, () => Buffer.from("1-x.txn")),
  };
  checkManifest(dir, "feature");
  for (const [name, fn] of Object.entries(breaks)) {
    fs.writeFileSync(file, remade(good, fn));
    assert.throws(() => checkManifest(dir, "feature"), assert.AssertionError, name);
  }
  fs.writeFileSync(file, good);
  fs.writeFileSync(path.join(dir, "_versions/latest_version_hint.json"), '{"version":1}');
  assert.throws(() => checkManifest(dir, "feature"), /hint/);
});

test("the stock reader sees a filter that an index answers wrongly", async (t) => {
  const w = workspace(t),
    g = place(path.join(w.dir, "t.lance"));
  await stock.lance12.create(g.ds, rows(0, 100));
  await stock.lance12.op(g.ds, "main", "index", { column: "id" });
  // The index is left as it is, while the manifest's fragment 0 becomes one with other rows under the same id.
  const other = place(path.join(w.dir, "u.lance"));
  await stock.lance12.create(other.ds, rows(1000, 100));
  const [data] = fs.readdirSync(path.join(other.ds, "data")),
    to = path.join(g.ds, "data", fs.readdirSync(path.join(g.ds, "data"))[0]);
  const theirs = load(other.ds).fragments[0].files[0];
  fs.copyFileSync(path.join(other.ds, "data", data), to);
  const { file } = load(g.ds),
    first = (m, n, fn) => edit(m, n, (b) => build(fn(parse(b))), 0);
  fs.writeFileSync(
    file,
    remade(fs.readFileSync(file), (m) => first(m, 2, (f) => first(f, 2, (d) => edit(d, 6, () => BigInt(theirs.size))))),
  );
  const answer = await stock.lance12.read(g.ds, "main");
  assert.ok(answer.wrong.length > 0, "reading by index finds nothing where a scan does");
});

test("snapshot and difference see every change", (t) => {
  const w = workspace(t),
    at = (n) => path.join(w.dir, n);
  fs.writeFileSync(at("a"), "1");
  fs.writeFileSync(at("b"), "1");
  const before = snapshot(w.dir);
  fs.writeFileSync(at("a"), "2");
  fs.rmSync(at("b"));
  fs.mkdirSync(at("d"));
  assert.deepEqual(difference(before, snapshot(w.dir)), ["changed: a", "gone: b", "new: d"]);
});

test("small things: version names, answers, bitmaps, time limits", async () => {
  assert.deepEqual(
    ["18446744073709551614.manifest", "7.manifest", "d9.manifest", "7.manifest#1", "latest_version_hint.json"].map(
      versionOf,
    ),
    [1, 7, undefined, undefined, undefined],
  );
  const a = parseAnswer("result: merged\nrows: +2 -1\nnotes:\n  - one\n  - two\nversion: 4\n");
  assert.deepEqual([a.result, a.rows, a.version, a.notes], ["merged", "+2 -1", "4", ["one", "two"]]);
  // {1, 2, 70000} without runs: cookie, 2 containers, their keys and cardinalities
  assert.equal(countBitmap(Buffer.from("3a300000020000000000010001000000180000001c000000010002007011", "hex")), 3);
  assert.equal((await run("sleep", ["100"], { limitMs: 100 })).timedOut, true);
});
