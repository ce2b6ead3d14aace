// SPDX-License-Identifier: Apache-2.0
// .diff/<ref>: what both sides changed, by arithmetic on what the generators did, and the plan's own words.
import assert from "node:assert/strict";
import { configure } from "../interop/configure.mjs";
import { load, tip } from "../interop/manifest.mjs";
import { must, run } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { ctl } from "../harness/control.mjs";
import { control, merges, mounted, onEach } from "../harness/tip.mjs";
import { scratch, withOps } from "../harness/verbs.mjs";
import { head, read, report, unchanged, untilKept } from "../harness/reports.mjs";

const short = (list) => list.map((r) => [r.unit, r.ours, r.theirs, r.merge, Number(r.count), r.where]);
const of = (d, cls) => short(d.rows.filter((r) => r.class === cls));
const dry = async (g, target, line) => (await ctl(control(g, target), `${line} dry-run`)).answer;

// The head says what the dry run of the same merge says.
async function sameAsDryRun(g, target, source, d) {
  const answer = await dry(g, target, source),
    h = head(d);
  assert.equal(h.base, answer.base);
  assert.equal(h.ours, answer.target);
  assert.equal(h.theirs, answer.source);
  assert.equal(h.result, answer["would-be"] ?? answer.result);
  for (const key of ["fragments", "rows", "conflicts"]) assert.equal(h[key], answer[key], key);
}

onEach("rows: deleted by one, by both, by the other; fragments that came", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  const d = await unchanged(g, () => read(g, "main", ".diff/feature"));
  // main: 15..24 of fragment 0, 50..59 of fragment 2; feature: 10..19 of 0, 50..59 of 1; appends of two and three rows
  assert.deepEqual(of(d, "rows").sort(), [
    ["fragment 0", "deleted", "deleted", "same", 5, "15..19"],
    ["fragment 0", "deleted", undefined, "ours", 5, "20..24"],
    ["fragment 0", undefined, "deleted", "theirs", 5, "10..14"],
    ["fragment 1", undefined, "deleted", "theirs", 10, "50..59"],
    ["fragment 2", "deleted", undefined, "ours", 10, "50..59"],
  ].sort());
  assert.deepEqual(of(d, "fragment").map((x) => x.slice(0, 5)), [
    ["fragment 3", "added", undefined, "ours", 2],
    ["fragment 3", undefined, "added", "theirs", 3],
  ]);
  assert.equal(head(d).result, "merged");
  await sameAsDryRun(g, "main", "feature", d);
  // the other way round, sides change places
  const back = await read(g, "feature", ".diff/main"),
    turned = of(back, "rows").map(([unit, ours, theirs, , n, where]) => [unit, theirs, ours, n, where]);
  assert.deepEqual(turned.sort(), of(d, "rows").map(([unit, ours, theirs, , n, where]) => [unit, ours, theirs, n, where]).sort());
  await merges(g, "main", "feature");
  const after = await read(g, "main", ".diff/feature");
  assert.equal(head(after).result, "up-to-date");
  assert.deepEqual(after.rows.filter((r) => r.merge !== "ours"), []);
});

onEach("updates and deletes of the same row: the plan's conflicts, word by word", async (t, engine) => {
  const g = await mounted(t, "delete_vs_update", engine);
  const branches = await names(g);
  for (const b of branches) {
    const d = await unchanged(g, () => read(g, "main", `.diff/${b}`)),
      answer = (await ctl(control(g, "main"), `${b} dry-run`)).answer,
      blocked = answer.result === "conflict";
    assert.equal(head(d).result, blocked ? "conflict" : answer["would-be"], b);
    const told = d.rows.filter((r) => r.class === "conflict");
    assert.equal(told.length, Number(answer.conflicts), b);
    for (const r of told) {
      assert.ok(answer.text.includes(`unit: ${r.unit}\n`), r.unit);
      assert.ok(answer.text.includes(`kind: ${r.where.split(",")[0]}\n`), r.where);
    }
    const clashing = d.rows.filter((r) => r.class === "rows" && r.merge === "conflict");
    assert.equal(clashing.length > 0, blocked, `${b}: ${d.text}`);
    for (const r of clashing) assert.ok(r.ours && r.theirs && (r.ours === "updated" || r.theirs === "updated"), d.text);
  }
});
const names = async (g) =>
  (await run("ls", [g.m.tree("")])).stdout.split("\n").filter((n) => n && n !== "main");

onEach("columns and names: schema, config, metadata and indexes, with values that would break a line", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 4));
  await g.fork("feature");
  await g.op("feature", "addColumn", { name: "extra", sql: "n * 2" });
  await g.op("feature", "index", { column: "id" });
  configure(g.storage("feature"), { config: { "k\t1": "x\ny", both: "theirs" }, table: { only: "t\\here" } });
  configure(g.ds, { config: { both: "ours" }, table: { mine: "-" } });
  const d = await unchanged(g, () => read(g, "main", ".diff/feature"));
  assert.deepEqual(of(d, "schema"), [["extra", undefined, "added", "theirs", 1, undefined]]);
  assert.deepEqual(of(d, "config").sort(), [
    ["both", "added", "added", "conflict", 1, "ours=ours theirs=theirs"],
    ["k\t1", undefined, "added", "theirs", 1, "theirs=x\ny"],
  ]);
  assert.deepEqual(of(d, "table-metadata").sort(), [
    ["mine", "added", undefined, "ours", 1, "ours=-"],
    ["only", undefined, "added", "theirs", 1, "theirs=t\\here"],
  ]);
  assert.equal(head(d).result, "conflict");
  assert.equal(of(d, "conflict").length, 1);
  assert.deepEqual(of(d, "index"), [["id_idx", undefined, "added", "theirs", 1, undefined]]);
  assert.deepEqual(of(d, "column").map((r) => [r[0], r[2], r[5]]), [["fragment 0", "written", "extra"]]);
  // what is true of the result comes along, also with a fast-forward
  configure(g.ds, { config: { both: null } });
  await merges(g, "main", "feature");
  assert.deepEqual(load(g.ds).indices.map((i) => i.name), ["id_idx"]);
  await g.op("main", "fork", { name: "ahead", from: "main" });
  await g.op("ahead", "index", { column: "n" });
  const ff = await read(g, "main", ".diff/ahead");
  assert.deepEqual(of(ff, "index"), [["n_idx", undefined, "added", "theirs", 1, undefined]]);
  await merges(g, "main", "ahead", "fast-forward");
  assert.deepEqual(load(g.ds).indices.map((i) => i.name).sort(), ["id_idx", "n_idx"]);
});

onEach("an index of which nothing is true in the result is left out", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 4));
  await g.fork("feature");
  await g.op("main", "add", { rows: rows(100, 2) });
  await g.op("feature", "delete", { where: "true" });
  await g.op("feature", "add", { rows: rows(200, 2) }); // the fragment gets another id on main
  await g.op("feature", "index", { column: "id" });
  const d = await unchanged(g, () => read(g, "main", ".diff/feature"));
  assert.deepEqual(of(d, "index"), [["id_idx", undefined, "added", "left-out", 1, undefined]]);
  await merges(g, "main", "feature");
  assert.equal(load(g.ds).indices.length, 0);
});

onEach("a tag is a ref; when it moves the text is another one", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 4));
  await g.fork("feature");
  await g.op("feature", "add", { rows: rows(100, 2) });
  const tag = (line) => must(ctl(control(g, "feature", ".tag"), line));
  await tag("v1");
  assert.equal(head(await read(g, "main", ".diff/tags/v1")).theirs, "feature@2");
  await g.op("feature", "add", { rows: rows(200, 2) });
  const kept = await untilKept(g, () => read(g, "main", ".diff/tags/v1"));
  assert.equal(head(kept).theirs, "feature@2");
  await tag("v1 move");
  assert.equal(head(await read(g, "main", ".diff/tags/v1")).theirs, "feature@3");
});

onEach("refs: with slashes nested or encoded, with versions, none that is not there; never listed", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  const heads = {};
  for (const ref of ["exp/sub", "exp%2Fsub", "tree/exp/sub", "exp/sub@6", "exp%2Fsub%406", "exp/sub/deep@6"])
    heads[ref] = await read(g, "main", `.diff/${ref}`).catch((e) => e.message);
  for (const ref of ["exp/sub", "exp%2Fsub", "tree/exp/sub", "exp/sub@6", "exp%2Fsub%406"])
    assert.equal(head(heads[ref]).theirs, "exp/sub@6", ref);
  // exp/sub is a file, so its sub-branch has the encoded name only
  assert.match(heads["exp/sub/deep@6"], /Not a directory/);
  assert.equal(head(await read(g, "main", ".diff/exp%2Fsub%2Fdeep@7")).theirs, "exp/sub/deep@7");
  assert.equal(head(await read(g, "exp/sub/deep", ".diff/main@1")).theirs, "main@1");
  for (const ref of ["nosuch", "exp/nosuch", "main@99", "main@", "%2F", "exp%2", "main@1x", "..."]) {
    const r = await run("cat", [report(g, "main", `.diff/${ref}`)], { env: { LC_ALL: "C" } });
    assert.match(r.stderr, /No such file or directory/, ref);
  }
  for (const dir of [".diff", ".diff/exp"])
    assert.equal((await run("ls", ["-A", report(g, "main", dir)])).stdout, "", `${dir} is empty to a walk`);
});

onEach("a merge base that was cleaned away is told, and nothing else", async (t, engine) => {
  const g = await mounted(t, "cleaned", engine);
  for (const [target, source] of [["main", "late"], ["late", "main"], ["main", "early"], ["early", "late"]]) {
    const d = await unchanged(g, () => read(g, target, `.diff/${source}`)),
      r = await ctl(control(g, target), `${source} dry-run`);
    if (r.code === 0 || r.answer.result !== "error") continue;
    assert.deepEqual(d.rows, []);
    assert.equal(d.comments.length, 1);
    assert.ok(d.comments[0].startsWith("# cannot be told: "), d.text);
  }
});

onEach("crosswise merges: the virtual base of the merge", async (t, engine) => {
  const g = withOps(await mounted(t, "siblings", engine)),
    two = (await names(g)).slice(0, 2);
  await g.op(two[0], "add", { rows: rows(700, 1) });
  await g.op(two[1], "add", { rows: rows(800, 1) });
  const at = two.map((b) => tip(g.storage(b)));
  const a = await ctl(control(g, two[0]), `${two[1]}@${at[1]}`),
    b = await ctl(control(g, two[1]), `${two[0]}@${at[0]}`);
  if (a.code || b.code) return t.skip(`the siblings do not merge: ${a.answer.text}${b.answer.text}`);
  const d = await unchanged(g, () => read(g, two[0], `.diff/${two[1]}`));
  await sameAsDryRun(g, two[0], two[1], d);
});
