// SPDX-License-Identifier: Apache-2.0
// Runs the pair table on a mount. One data set for each operation of the source; in it a branch for each case's source, and
// a fresh one for its target. The two engines write half of the cases each; both read every result.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { expectRemembered, previewError, previewOf, rememberPreview } from "../harness/previews.mjs";
import { expectRows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkCommitted, control } from "../harness/tip.mjs";
import { checkColumns, fieldsOf, withOps } from "../harness/verbs.mjs";
import { difference, ENGINES, place, snapshot, workspace } from "../harness/workspace.mjs";
import { CELLS, NOT_MADE } from "./cells.mjs";
import { BASE, LATER, together } from "./operations.mjs";

// --- the table as a list of runs, grouped by the source's operation ---

export function* directions() {
  let n = 0;
  for (const [a, b, cases] of CELLS)
    for (const [when, opA, opB, expected = {}] of cases) {
      const name = (source, target) => `source ${source}, target ${target}${when && `: ${when}`}`;
      yield { engine: ENGINES[n % 2], group: a, name: name(a, b), source: opA, target: opB, expected };
      yield { engine: ENGINES[(n + 1) % 2], group: b, name: name(b, a), source: opB, target: opA, expected: swapped(expected) };
      n++;
    }
}
const swapped = ({ words, ...rest }) => ({ ...rest, ...(words?.length && { words: words.toReversed() }) });
const grouped = (list) => list.reduce((m, c) => m.set(c.group, [...(m.get(c.group) ?? []), c]), new Map());

export function runTable(engine) {
  for (const [group, cases] of grouped([...directions()].filter((c) => c.engine === engine)))
    describe(`source ${group} [written by ${engine}]`, () => {
      const undo = [];
      let made; // when the first one asks
      const g = () => (made ??= ground(workspace({ after: (fn) => undo.push(fn) }), engine));
      after(async () => {
        for (const fn of undo) await fn();
      });
      for (const c of cases) test(`pair: ${c.name}`, async () => onePair(await g(), c));
      test(`after the unmount: every result of source ${group}`, async () => afterUnmount(await g()));
    });
  test("pairs that stock Lance cannot make", (t) => {
    for (const [pair, reason] of Object.entries(NOT_MADE)) t.diagnostic(`${pair}: ${reason}`);
  });
}

// --- states ---

export async function ground(w, engine) {
  const root = path.join(w.dir, "data"),
    ds = path.join(root, "t.lance");
  fs.mkdirSync(root);
  await stock[engine].create(ds, BASE.rows.slice(0, 10));
  await stock[engine].op(ds, "main", "add", { rows: BASE.rows.slice(10) });
  await stock[engine].op(ds, "main", "index", { column: "id" });
  const g = withOps({ w, engine, ...place(ds, root) });
  g.third = (name) =>
    once(g, `third ${name}`, async () => {
      const third = await branch(g, "third", "main", INDEXED);
      await g.op(third, "addColumn", { name, sql: "n + 1" });
      return `${third}@${load(g.storage(third)).version}`;
    });
  return Object.assign(g, { m: await mount(w, ds), made: new Map(), names: 0, results: [] });
}

// Version 3 of main has an index. Stock Lance loses the files of an inherited index when it compacts the branch or makes
// another branch from it (lance-format section 13), so branches that this happens to come from the version before.
const INDEXED = 3,
  PLAIN = 2;
const UNINDEXED = { ...BASE, indexes: [] };
const breaksIndexes = (c) => c.source.compacts || c.target.compacts || c.expected.keyed;

async function branch(g, letter, from, version) {
  const name = `${letter}${g.names++}`;
  await g.op("main", "fork", { name, from, version });
  return name;
}
// A branch that is made once for all cases.
async function once(g, key, make) {
  if (!g.made.has(key)) g.made.set(key, await make());
  return g.made.get(key);
}
const keyedGround = (g) =>
  once(g, "keyed", async () => {
    const name = await branch(g, "keyed", "main", PLAIN);
    await g.op(name, "alter", { path: "id", nullable: false });
    await g.op(name, "fieldMetadata", { path: "id", metadata: { "lance-schema:unenforced-primary-key": "true" } });
    return name;
  });

// A side restores the ground itself: it stands on a branch of its own, from which the other one comes.
async function onOwnGround(g, c) {
  const own = await branch(g, "p", "main", PLAIN);
  await g.op(own, "add", { rows: LATER });
  const other = await branch(g, c.source.onGround ? "t" : "s", own);
  const [source, target] = c.source.onGround ? [own, other] : [other, own];
  await (c.source.onGround ? c.target : c.source).run(g, other);
  await (c.source.onGround ? c.source : c.target).run(g, own);
  return { source, target, base: { ...UNINDEXED, rows: [...BASE.rows, ...LATER] } };
}

export async function statesOf(g, c) {
  if (c.source.onGround || c.target.onGround) return onOwnGround(g, c);
  const from = c.expected.keyed ? await keyedGround(g) : "main",
    version = from === "main" ? (breaksIndexes(c) ? PLAIN : INDEXED) : undefined,
    base = version === INDEXED ? BASE : { ...UNINDEXED, fields: fieldsOf(g, from) };
  const source = await once(g, `${from} ${version} ${c.source.label}`, async () => {
    const name = await branch(g, "s", from, version);
    await c.source.run(g, name);
    return name;
  });
  const target = await branch(g, "t", from, version);
  await c.target.run(g, target);
  return { source, target, base };
}

// --- one case ---

const plain = (text) => text.split("\n").filter((l) => !l.startsWith("#")).join("\n");
const said = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${plain(r.answer.text)}`;
// What an answer and that of its dry run have in common.
const lasting = (text) => text.split("\n").filter((l) => !/^(result|would-be|version|transaction):/.test(l));

async function onePair(g, c) {
  const { source, target, base } = await statesOf(g, c),
    before = load(g.storage(target)).version,
    files = snapshot(g.root);
  const dry = await ctl(control(g, target), `${source} dry-run`);
  const preview = await lookBefore(g, c, source, target, base);
  assert.deepEqual(difference(files, snapshot(g.root)), [], "a dry run and a preview write nothing");
  const real = await ctl(control(g, target), source);
  assert.deepEqual(lasting(dry.answer.text), lasting(real.answer.text), "the dry run says what the merge then says");
  assert.equal(dry.errno, real.errno, "the dry run fails as the merge does");
  assert.equal(preview.errno, real.errno, "the preview fails as the merge does");
  if (c.expected.stops || (c.expected.mayStop && real.code)) {
    assert.deepEqual(difference(files, snapshot(g.root)), [], "a merge that stopped changed the storage");
    return checkStopped(c.expected, real);
  }
  assert.equal(real.code, 0, said(real));
  assert.equal(dry.answer.result === "dry-run" ? dry.answer["would-be"] : dry.answer.result, real.answer.result);
  checkCommitted(g, target, before, real);
  expectRemembered(g, target, preview.manifest);
  await checkResult(g, c, target, together(base, c.source, c.target), real.answer);
  const again = await ctl(control(g, target), source);
  assert.equal(again.answer.result, "up-to-date", `once more: ${said(again)}`);
}

// The preview before the merge: the rows and indexes that the merge must give, or the reason why there is none.
async function lookBefore(g, c, source, target, base) {
  const errno = await previewError(g, target, source);
  if (errno) return { errno };
  if (c.expected.stops) assert.fail(`a preview of a merge that must stop: ${previewOf(g, target, source)}`);
  const one = ENGINES[g.names % 2],
    at = previewOf(g, target, source);
  await checkRead(await stock[one].read(at), resultOf(c, target, together(base, c.source, c.target)), `${at}, read by ${one}`);
  return { manifest: rememberPreview(g, target, source) };
}

function checkStopped(expected, r) {
  assert.notEqual(r.code, 0, `came through: ${said(r)}`);
  assert.ok(["ECANCELED", ...(expected.stops === "conflict" ? [] : ["EOPNOTSUPP"])].includes(r.errno), said(r));
  assert.match(r.answer.result, expected.stops === "conflict" ? /^conflict$/ : /^(conflict|refused)$/, said(r));
  const says = expected.says ?? expected.mayStop;
  if (says) return assert.match(r.answer.text, says, "it says what is in the way");
  const kinds = [...r.answer.text.matchAll(/^ {2}- kind: (.*)\n {4}unit: (.*)$/gm)].map((m) => ({ kind: m[1], unit: m[2] }));
  assert.equal(kinds.length, Number(r.answer.conflicts), said(r));
  assert.ok(kinds.length > 0 && kinds.some((k) => expected.unit.test(k.unit)), `a conflict in ${expected.unit}: ${said(r)}`);
  for (const { kind } of kinds) {
    if (expected.kind) assert.match(kind, expected.kind, said(r));
    if (expected.words?.length) assert.equal(kind, expected.words.toReversed().join("-"), `ours first: ${said(r)}`);
  }
}

async function checkResult(g, c, target, wanted, answer) {
  const m = checkColumns(g, target);
  assert.deepEqual(new Map(fieldsOf(g, target).map((f) => [f[0], f])), new Map(wanted.fields.map((f) => [f[0], f])), "columns");
  assert.deepEqual(m.config, wanted.config, "config");
  const metadata = Object.fromEntries(Object.entries(m.metadata).filter(([k]) => !k.startsWith("lancefs.")));
  assert.deepEqual(metadata, wanted.metadata, "table metadata");
  for (const [column, n] of wanted.notes)
    assert.ok(answer.notes.some((x) => x.includes(`column ${column} is null in ${n} rows`)), `a note on ${column}: ${answer.text}`);
  const result = resultOf(c, target, wanted);
  const [one, other] = g.names % 2 ? ENGINES : ENGINES.toReversed();
  await checkRead(await stock[one].read(g.m.tree(target)), result, `tree/${target}, read by ${one}`);
  await checkRead(await stock[other].read(g.m.table(target)), result, `tables/${target}, read by ${other}`);
  for (const e of ENGINES) await checkRead(await stock[e].read(g.ds, target), result, `${target} in the storage, read by ${e}`);
  g.results.push(result);
}
function resultOf(c, target, wanted) {
  const indexes = new Set([...(c.expected.indexes ?? wanted.indexes)].filter((x) => !c.expected.maybe?.includes(x)));
  return { target, rows: wanted.rows, indexes, maybe: new Set(c.expected.maybe) };
}
function checkRead(answer, { rows, indexes, maybe }, where) {
  expectRows(answer, rows, where);
  assert.deepEqual(new Set(answer.indexes.filter((x) => !maybe.has(x))), indexes, `indexes of ${where}`);
}

// Nobody holds the mount any more: the same rows; and after the other engine has compacted them.
async function afterUnmount(g) {
  await g.m.unmount();
  const [other] = ENGINES.filter((e) => e !== g.engine);
  for (const r of g.results) {
    for (const e of ENGINES) checkRead(await stock[e].read(g.ds, r.target), r, `${r.target} after the unmount, read by ${e}`);
    if (r.indexes.has("id_idx")) continue; // inherited: stock Lance would lose it
    await stock[other].op(g.ds, r.target, "optimize");
    expectRows(await stock[other].read(g.ds, r.target), r.rows, `${r.target}, compacted by ${other}`);
  }
}
