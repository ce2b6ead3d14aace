// SPDX-License-Identifier: Apache-2.0
// Stock engines as the tests use them: open a data set by its directory, read it whole, make one commit.
// Every call opens anew and closes again, so that nothing is remembered between two looks.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ALTERATIONS } from "./alter.mjs";

// LanceDB wants NAME.lance inside a database directory, and takes few letters in a NAME: what is called otherwise (a
// branch below a mount, a table `ü`) is opened by a link.
const TABLE = /^([\w.-]+)\.lance$/;
function database(dir) {
  const table = TABLE.exec(path.basename(dir))?.[1];
  if (table) return { root: path.dirname(dir), table, done() {} };
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "lancefs-db-"));
  fs.symlinkSync(dir, path.join(root, "t.lance"));
  return { root, table: "t", done: () => fs.rmSync(root, { recursive: true, force: true }) };
}

// The table of `branch` in the data set at `dir`: { t, db, main, close }.
async function open({ lancedb }, dir, branch) {
  // a URL or a path that begins with a dot is left as it is spelt: stock Lance compares such strings
  const { root, table, done } = database(/^(file:|\.)/.test(dir) ? dir : path.resolve(dir));
  const opened = [];
  const keep = (x) => (opened.push(x), x);
  const close = () => {
    for (const x of opened.reverse()) x.close();
    done();
  };
  try {
    const db = keep(await lancedb.connect(root)),
      main = keep(await db.openTable(table));
    const t = !branch || branch === "main" ? main : keep(await (await main.branches()).checkout(branch));
    return { t, db, main, close };
  } catch (e) {
    close();
    throw e;
  }
}

// Calls fn(table, { db, main }) with the table of `branch` in the data set at `dir`.
export async function withTable(engine, dir, branch, fn) {
  const { t, db, main, close } = await open(engine, dir, branch);
  try {
    return await fn(t, { db, main });
  } finally {
    close();
  }
}

// A value as JSON can carry it and a test can write it down.
export function plain(x) {
  if (x === null || x === undefined) return null;
  if (typeof x === "bigint") return Number.isSafeInteger(Number(x)) ? Number(x) : String(x);
  if (typeof x !== "object") return x;
  if (x instanceof Date) return x.toISOString();
  if (ArrayBuffer.isView(x) || Array.isArray(x) || typeof x[Symbol.iterator] === "function") return [...x].map(plain);
  return Object.fromEntries(Object.entries(x.toJSON?.() ?? x).map(([k, v]) => [k, plain(v)]));
}

const byIdThenText = (a, b) => a[0] - b[0] || (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

async function scan(t, columns) {
  const out = [];
  for (const batch of (await t.query().select(columns).toArrow()).batches) {
    const vectors = columns.map((c) => batch.getChild(c));
    for (let i = 0; i < batch.numRows; i++) out.push(vectors.map((v) => plain(v.get(i))));
  }
  return out;
}

// For a few values of each indexed column: does a filter find what a scan finds? Returns [checked, wrong].
async function checkIndexes(t, columns, rows) {
  const checked = [],
    wrong = [];
  for (const {
    name,
    columns: [column],
  } of await t.listIndices()) {
    const at = columns.indexOf(column),
      values = rows.map((r) => r[at]).filter((x) => x !== null);
    if (at < 0 || typeof values[0] === "object" || values.length === 0) continue; // a vector index has no equality
    checked.push(name);
    for (const value of new Set([values[0], values[values.length >> 1], values.at(-1), Math.min(...values)])) {
      if (Number.isNaN(value)) continue; // the least of texts
      const literal = typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : value;
      const found = await t.countRows(`${column} = ${literal}`),
        there = values.filter((x) => x === value).length;
      if (found !== there) wrong.push(`${name}: ${column} = ${literal} finds ${found}, a scan finds ${there}`);
    }
  }
  return [checked, wrong];
}

// { version, columns, rows, count, indexes, wrong }: rows are arrays in the order of columns, sorted by the first one.
async function readWhole(t) {
  const columns = (await t.schema()).fields.map((f) => f.name);
  const rows = (await scan(t, columns)).sort(byIdThenText);
  const [indexes, wrong] = await checkIndexes(t, columns, rows);
  return { version: await t.version(), columns, rows, count: await t.countRows(), indexes, wrong };
}
export const read = (engine, dir, branch) => withTable(engine, dir, branch, readWhole);

// Cleaning by date needs a date after the newest commit; the same second counts as old enough.
const NOW = () => new Date(Date.now() + 1000);

const OPS = {
  add: (t, { rows }) => t.add(rows),
  // An overwrite with other columns; of main alone.
  recreate: async (t, { rows }, _, db) => (await db.createTable(t.name, rows, { mode: "overwrite" })).close(),
  overwrite: (t, { rows }) => t.add(rows, { mode: "overwrite" }),
  delete: (t, { where }) => t.delete(where),
  update: (t, { where, values }) => t.update({ where, values }),
  addColumn: (t, { name, sql }) => t.addColumns([{ name, valueSql: sql }]),
  ...ALTERATIONS,
  optimize: (t) => t.optimize(),
  clean: (t) => t.optimize({ cleanupOlderThan: NOW(), deleteUnverified: true }),
  cleanVerified: (t) => t.optimize({ cleanupOlderThan: NOW() }),
  // kind: what lancedb.Index calls it (btree, bitmap, labelList, fts, ivfFlat, ivfPq, ...)
  index: (t, { column, kind = "btree", name, options }, { lancedb }) =>
    t.createIndex(column, { config: lancedb.Index[kind](options), replace: true, name }),
  // [rows that the index covers, rows that it does not]
  coverage: async (t, { name }) => {
    const s = await t.indexStats(name);
    return s && [s.numIndexedRows, s.numUnindexedRows];
  },
  words: async (t, { column, text }) =>
    (await t.query().fullTextSearch(text, { columns: [column] }).limit(10000).select(["id"]).toArray())
      .map((r) => Number(r.id))
      .sort((a, b) => a - b),
  dropIndex: (t, { name }) => t.dropIndex(name),
  restore: async (t, { version }) => {
    await t.checkout(version);
    await t.restore();
  },
  fork: async (t, { name, from, version }) => (await (await t.branches()).create(name, from, version)).close(),
  drop: async (t, { name }) => (await t.branches()).delete(name),
  tag: async (t, { name, version }) => (await t.tags()).create(name, version),
  retag: async (t, { name, version }) => (await t.tags()).update(name, version),
  countAt: async (t, { tag }) => {
    await t.checkout(tag);
    return t.countRows();
  },
  untag: async (t, { name }) => (await t.tags()).delete(name),
  // { name: version }
  tags: async (t) =>
    Object.fromEntries(Object.entries(await (await t.tags()).list()).map(([name, tag]) => [name, Number(tag.version)])),
  // { name: [parent, version] }
  forks: async (t) =>
    Object.fromEntries(
      Object.entries(await (await t.branches()).list()).map(([name, b]) => [name, [b.parentBranch ?? "main", Number(b.parentVersion)]]),
    ),
  branches: async (t) => Object.keys(await (await t.branches()).list()).sort(),
  count: (t, { where }) => t.countRows(where),
  // [id, row id] of each row that the filter lets through, by id.
  rowIds: async (t, { where }) => {
    const query = where ? t.query().where(where) : t.query();
    const found = await query.select(["id"]).withRowId().toArray();
    return found.map((r) => [Number(r.id), Number(r._rowid)]).sort((a, b) => a[0] - b[0]);
  },
  version: (t) => t.version(),
};

// Operations that are asked for what they give.
const ANSWERS = new Set(["branches", "count", "countAt", "coverage", "forks", "rowIds", "search", "tags", "version", "words"]);

// One stock operation on a branch. fork and drop are asked of main and name the branch in their arguments.
export async function operate(engine, dir, branch, op, args = {}) {
  if (!OPS[op]) throw new Error(`no operation ${op}`);
  return withTable(engine, dir, branch, async (t, { db }) => {
    const out = await OPS[op](t, args, engine, db);
    return { version: await t.version(), value: ANSWERS.has(op) ? out : undefined };
  });
}

// Tables that stay open, as a long-running program has them: opened by keep, read or written by useKept ("read" or an
// operation), closed by it with "close".
const kept = new Map();
export async function keep(engine, key, dir, branch) {
  kept.set(key, await open(engine, dir, branch));
}
export async function useKept(engine, key, op, args = {}) {
  const { t, db, close } = kept.get(key);
  if (op === "read") return readWhole(t);
  if (op !== "close") return { value: await OPS[op](t, args, engine, db), version: await t.version() };
  kept.delete(key);
  return close();
}

// The tables of a database directory, by name.
export async function tables({ lancedb }, dir) {
  const db = await lancedb.connect(dir);
  try {
    return (await db.tableNames()).sort();
  } finally {
    db.close();
  }
}

// The schema that the rows would get, but these columns are required (not nullable).
function withRequired({ lancedb, arrow }, rows, required) {
  const { fields } = lancedb.makeArrowTable(rows).schema;
  return new arrow.Schema(fields.map((f) => new arrow.Field(f.name, f.type, !required.includes(f.name))));
}

// A new data set DIR (NAME.lance) with these rows; options are the engine's storage options, and { required }.
export async function create(engine, dir, rows, { required, ...storageOptions } = {}) {
  const db = await engine.lancedb.connect(path.dirname(dir));
  const schema = required && withRequired(engine, rows, required);
  try {
    (await db.createTable(path.basename(dir, ".lance"), rows, { storageOptions, schema })).close();
  } finally {
    db.close();
  }
}
