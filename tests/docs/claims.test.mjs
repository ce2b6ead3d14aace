// SPDX-License-Identifier: Apache-2.0
// What README says of others is asked of them again, where they are here to be asked.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { run } from "../harness/proc.mjs";
import { PROJECT, workspace } from "../harness/workspace.mjs";

const ASK = `
import { loadEngine } from ${JSON.stringify(path.join(PROJECT, "tests/interop/engines.mjs"))};
const [engine, verb, dir] = process.argv.slice(2);
const db = await loadEngine(engine).lancedb.connect(dir);
const table = await db.createTable("t", [{ id: 1 }]);
await (await (await table.branches()).create("f")).add([{ id: 2 }]);
await (await table.branches())[verb]("f").then(() => console.log("done"), (e) => console.log(e.message));`;

for (const [engine, verb, says] of [
  ["lance10", "merge", "only supported on remote tables"],
  ["lance12", "cherryPick", "only supported on Enterprise tables"],
])
  test(`open-source LanceDB (${engine}) has no way back from a branch: ${verb} says "${says}"`, async (t) => {
    const w = workspace(t),
      script = path.join(w.dir, "ask.mjs");
    fs.writeFileSync(script, ASK);
    const r = await run(process.execPath, [script, engine, verb, path.join(w.dir, "db")]);
    assert.ok(r.stdout.includes(says), r.stdout + r.stderr);
    assert.ok(fs.readFileSync(path.join(PROJECT, "README.md"), "utf8").replace(/\s+/g, " ").includes(`"${says}"`));
  });
