// SPDX-License-Identifier: Apache-2.0
// File handles, as NFS servers use them (C81): what the kernel forgot is ESTALE or the same file, never another one.
import assert from "node:assert/strict";
import fs from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { must, run, sh } from "../harness/proc.mjs";
import { stock } from "../harness/stock.mjs";
import { mounted } from "../harness/tip.mjs";
import { handlesPath } from "../harness/workspace.mjs";

const ESTALE = constants.errno.ESTALE;

test("C81 handles: the same file or ESTALE, after drop_caches and when a branch of that name is another one", async (t) => {
  if (process.getuid() !== 0) return t.skip("handles are opened by root alone");
  const g = await mounted(t, "many_fragments", "lance12", { generated: { args: ["30"] } }),
    handles = await handlesPath(),
    saved = path.join(g.w.dir, "handles");
  await must(sh('mkdir "$1"', [g.m.tree("short")]));
  const names = (branch) => fs.readdirSync(g.m.tree(branch, "data")).map((n) => g.m.tree(branch, "data", n)),
    files = [...names("main"), ...names("short"), g.m.tree("short"), g.m.tree("short", "data"), g.m.tree("short", ".schema")],
    stats = files.map((f) => fs.statSync(f, { bigint: true })),
    took = await run(handles, ["save", saved, ...files]);
  if (took.code === 3) return; // said from the start: no handles, no export
  assert.equal(took.code, 0, took.stderr);
  const opened = async () => (await must(run(handles, ["open", saved, g.m.mnt]))).stdout.trim().split("\n").map((l) => l.split(" "));
  const check = (lines, may) => {
    assert.equal(lines.length, files.length);
    for (const [i, [word, ino]] of lines.entries()) {
      if (word === "error") assert.equal(Number(ino), ESTALE, `${files[i]}: errno ${ino}`);
      else assert.ok(may(i) && BigInt(ino) === BigInt.asUintN(64, stats[i].ino), `${files[i]} is another file: ${lines[i]}`);
    }
  };
  check(await opened(), () => true);
  fs.writeFileSync("/proc/sys/vm/drop_caches", "2");
  check(await opened(), () => true);
  // the branch goes, and one of its name comes that is another one
  await must(sh('rmdir "$1"', [g.m.tree("short")]));
  await must(sh('mkdir "$1"', [g.m.tree("short")]));
  await stock.lance12.op(g.ds, "short", "delete", { where: "id < 5" });
  names("short").forEach((f) => fs.statSync(f));
  fs.writeFileSync("/proc/sys/vm/drop_caches", "2");
  const gone = fs.statSync(g.m.tree("short"), { bigint: true }).ino;
  const now = await opened();
  check(now, () => true); // a file that both share is still that file
  const [word, ino] = now[files.indexOf(g.m.tree("short"))];
  assert.ok(word === "error" || BigInt(ino) !== BigInt.asUintN(64, gone), "an old handle is never the new branch");
  await g.m.unmount();
});
