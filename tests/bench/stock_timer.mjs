// SPDX-License-Identifier: Apache-2.0
// A stock engine with its tables kept open, at their newest version before the clock starts: what it then takes is the
// commit alone. JSON lines as in harness/stock_server.mjs.
import path from "node:path";
import readline from "node:readline";
import { loadEngine } from "../interop/engines.mjs";

const { lancedb } = loadEngine(process.argv[2]);
const open = new Map();

async function table(dir, branch) {
  const key = `${dir} ${branch}`;
  if (!open.has(key)) {
    const main = await (await lancedb.connect(path.dirname(dir))).openTable(path.basename(dir, ".lance"));
    open.set(key, branch === "main" ? main : await (await main.branches()).checkout(branch));
  }
  return open.get(key);
}

const ANSWER = {
  async append({ dir, branch, rows }) {
    const t = await table(dir, branch);
    await t.checkoutLatest();
    const start = process.hrtime.bigint();
    await t.add(rows);
    return Number(process.hrtime.bigint() - start) / 1e6;
  },
  async create({ dir, name }) {
    const t = await table(dir, "main");
    await t.checkoutLatest();
    const branches = await t.branches(),
      start = process.hrtime.bigint();
    const made = await branches.create(name, "main");
    const ms = Number(process.hrtime.bigint() - start) / 1e6;
    made.close();
    return ms;
  },
  fork: async ({ dir, name, from }) => (await (await (await table(dir, "main")).branches()).create(name, from)).close(),
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  try {
    console.log(JSON.stringify({ value: (await ANSWER[request.what](request)) ?? null }));
  } catch (e) {
    console.log(JSON.stringify({ error: e.message.split("\n")[0] }));
  }
}
