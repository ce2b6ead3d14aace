// SPDX-License-Identifier: Apache-2.0
// One stock engine for the histories: JSON lines, {id, what, ...} in, {id, value} or {id, error} out. A commit answers
// with the table as the same handle then sees it, row addresses included.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { loadEngine } from "../interop/engines.mjs";
import { create, plain, read, withTable } from "../interop/reader.mjs";

const engine = loadEngine(process.argv[2]);
const LATER = () => new Date(Date.now() + 1000); // the same second counts as old enough

const COMMITS = {
  append: (t, { rows }) => t.add(rows),
  overwrite: (t, { rows }) => t.add(rows, { mode: "overwrite" }),
  delete: (t, { where }) => t.delete(where),
  update: (t, { where, valuesSql }) => t.update({ where, valuesSql }),
  upsert: (t, { rows }) => t.mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(rows),
  insertNew: (t, { rows }) => t.mergeInsert("id").whenNotMatchedInsertAll().execute(rows),
  compact: async (t) => (await t.optimize()).compaction.fragmentsRemoved > 0,
  clean: async (t) =>
    (await t.optimize({ cleanupOlderThan: LATER(), deleteUnverified: true })).compaction.fragmentsRemoved > 0,
  index: (t, { column }) => t.createIndex(column, { config: engine.lancedb.Index.btree(), replace: true }),
  look: () => {},
  restore: async (t, { version }) => {
    await t.checkout(version);
    await t.restore();
  },
  addColumn: (t, { name, valueSql }) => t.addColumns([{ name, valueSql }]),
  dropColumn: (t, { name }) => t.dropColumns([name]),
  renameColumn: (t, { name, rename }) => t.alterColumns([{ path: name, rename }]),
};

async function addresses(t) {
  const out = [];
  for (const batch of (await t.query().select(["tok"]).withRowId().toArrow()).batches) {
    const [tok, at] = ["tok", "_rowid"].map((c) => batch.getChild(c));
    for (let i = 0; i < batch.numRows; i++) out.push([plain(tok.get(i)), plain(at.get(i))]);
  }
  return out;
}

const ANSWERS = {
  create: async ({ dir, rows, storageOptions }) => {
    fs.mkdirSync(path.dirname(dir), { recursive: true });
    await create(engine, dir, rows, storageOptions);
    return withTable(engine, dir, "main", async (t) => ({ version: await t.version(), at: await addresses(t) }));
  },
  commit: ({ dir, branch, op, args }) =>
    withTable(engine, dir, branch, async (t) => {
      const value = await COMMITS[op](t, args);
      return { version: await t.version(), at: await addresses(t), value: value === true };
    }),
  fork: ({ dir, name, from, version }) =>
    withTable(engine, dir, "main", async (t) => (await (await t.branches()).create(name, from, version)).close()),
  drop: ({ dir, name }) => withTable(engine, dir, "main", async (t) => (await t.branches()).delete(name)),
  read: async ({ dir, branch, addressed }) => {
    const answer = await read(engine, dir, branch);
    if (addressed) answer.at = await withTable(engine, dir, branch, addresses);
    return answer;
  },
};

async function answer(request) {
  try {
    return { id: request.id, value: (await ANSWERS[request.what](request)) ?? null };
  } catch (e) {
    return { id: request.id, error: e.message.split("\n")[0] };
  }
}

for await (const line of readline.createInterface({ input: process.stdin }))
  answer(JSON.parse(line)).then((a) => process.stdout.write(`${JSON.stringify(a)}\n`));
