// SPDX-License-Identifier: Apache-2.0
// One stock engine that answers JSON lines: {id, what, ...} in, {id, value} or {id, error} out. Requests run side by
// side, so a test can race several commits of one engine too.
import readline from "node:readline";
import { loadEngine } from "../interop/engines.mjs";
import { create, keep, operate, read, tables, useKept } from "../interop/reader.mjs";

const engine = loadEngine(process.argv[2]);
const ANSWER = {
  read: ({ dir, branch }) => read(engine, dir, branch),
  op: ({ dir, branch, op, args }) => operate(engine, dir, branch, op, args),
  tables: ({ dir }) => tables(engine, dir),
  keep: ({ key, dir, branch }) => keep(engine, key, dir, branch),
  kept: ({ key, op, args }) => useKept(engine, key, op, args),
  create: ({ dir, rows, options }) => create(engine, dir, rows, options),
};

async function answer(request) {
  try {
    return { id: request.id, value: (await ANSWER[request.what](request)) ?? null };
  } catch (e) {
    return { id: request.id, error: e.message.split("\n")[0] };
  }
}

for await (const line of readline.createInterface({ input: process.stdin }))
  answer(JSON.parse(line)).then((a) => process.stdout.write(`${JSON.stringify(a)}\n`));
