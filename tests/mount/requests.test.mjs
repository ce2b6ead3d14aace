// SPDX-License-Identifier: Apache-2.0
// How often the kernel has to ask: counted by the mount itself. A walk over many files must not cost a request for each.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { must, run } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { textOf } from "../harness/reports.mjs";
import { stock } from "../harness/stock.mjs";
import { mounted } from "../harness/tip.mjs";
import { ENGINES } from "../harness/workspace.mjs";

const ENGINE = "lance12",
  FILES = 300,
  FEW = 30; // of all kinds, whatever the number of files
const many = (t) => mounted(t, "big_manifest", ENGINE, { generated: { args: [String(FILES)] } });

// Requests of each kind that `fn` leads to, those of looking at the numbers included.
async function requests(g, fn) {
  const all = async () =>
    new Map(
      [...(await textOf(path.join(g.m.mnt, ".stats"))).matchAll(/^lancefs_operation_seconds_count\{operation="(\w+)"\} (\d+)$/gm)].map(
        ([, op, n]) => [op, Number(n)],
      ),
    );
  const before = await all();
  await fn();
  const after = await all();
  return (op) => after.get(op) - before.get(op);
}
const listing = async (dir) => (await must(run("find", [dir, "-printf", "%f %s %y\n"]))).stdout;

test("ls -l of many files, by their whole paths: entries, attributes and 'no such attribute' are known", async (t) => {
  const g = await many(t),
    dir = g.m.tree("main", "data");
  for (const look of ["first", "second"]) {
    const asked = await requests(g, () => must(run("ls", ["-l", dir])));
    for (const op of ["lookup", "getattr", "xattr"]) assert.ok(asked(op) < FEW, `${look} look: ${asked(op)} ${op}`);
  }
  const paths = fs.readdirSync(dir).map((f) => path.join(dir, f)),
    asked = await requests(g, () => must(run("stat", ["--", ...paths])));
  assert.ok(asked("lookup") + asked("getattr") < FEW, `stat: ${asked("lookup")} lookups, ${asked("getattr")} getattr`);
});

test("a table's link is read once", async (t) => {
  const g = await many(t),
    file = path.join(g.m.table("main"), "_versions");
  await must(run("ls", [file]));
  const asked = await requests(g, () => must(run("stat", ["--", ...Array(100).fill(file)])));
  assert.ok(asked("readlink") < 3, `${asked("readlink")} readlink`);
});

test("the listing of one version is kept by the kernel, that of the newest is not", async (t) => {
  const g = await many(t),
    old = g.m.tree("main", ".versions", "1", "data"),
    data = g.m.tree("main", "data");
  const first = await listing(old),
    newest = await listing(data),
    asked = await requests(g, () => listing(old));
  assert.equal(asked("readdir"), 0);
  await stock[ENGINE].op(g.ds, "main", "add", { rows: rows(900_000, 1) });
  assert.equal(await listing(old), first);
  assert.equal((await listing(data)).split("\n").length, newest.split("\n").length + 1);
});

test("closing what was only read asks nothing", async (t) => {
  const g = await many(t),
    dir = g.m.tree("main", "data"),
    asked = await requests(g, () => must(run("sha1sum", ["--", ...fs.readdirSync(dir).map((f) => path.join(dir, f))])));
  assert.ok(asked("open") >= FILES);
  assert.ok(asked("flush") < FEW, `${asked("flush")} flush`);
});

// Counted once: 81 of lance12, 84 of lance10, of which 32 and 34 are lookups; with each path's walk asking for the branch's
// name it was 131 and 137. Not counted here: what the kernel asks of its own accord, or forgets.
for (const engine of ENGINES)
  test(`a commit on a branch asks for no name of it twice [${engine}]`, async (t) => {
    const g = await many(t);
    await stock[ENGINE].op(g.ds, "main", "fork", { name: "line" });
    const append = (id) => stock[engine].op(g.m.table("line"), "main", "add", { rows: rows(id, 1) });
    for (const id of [900_000, 900_001]) await append(id); // directories are made, the table is opened
    const asked = await requests(g, () => append(900_002)),
      kinds = ["lookup", "getattr", "open", "read", "write", "flush", "create", "rename", "link", "unlink", "opendir", "readdir", "xattr"],
      all = kinds.reduce((sum, op) => sum + asked(op), 0);
    t.diagnostic(kinds.map((op) => `${op} ${asked(op)}`).join(", "));
    assert.equal(asked("link"), 1, "one commit");
    assert.ok(asked("lookup") < 48, `${asked("lookup")} lookups`);
    assert.ok(all < 105, `${all} requests`);
  });
