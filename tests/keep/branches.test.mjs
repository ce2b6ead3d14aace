// SPDX-License-Identifier: Apache-2.0
// MNT/.branches: one line a branch, numbers by hand, the size that stat says.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { filesOf } from "../harness/keep.mjs";
import { must, run } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { status } from "../harness/reports.mjs";
import { stock } from "../harness/stock.mjs";
import { merges, mounted, onEach } from "../harness/tip.mjs";

async function table(g) {
  const file = path.join(g.m.mnt, ".branches"),
    { stdout } = await must(run("cat", [file])),
    [head, ...lines] = stdout.trimEnd().split("\n").map((l) => l.split("\t"));
  assert.equal((await must(run("stat", ["-c", "%s", file]))).stdout.trim(), String(Buffer.byteLength(stdout)));
  assert.deepEqual(head, ["# branch", "tip", "parent", "ahead", "behind", "merged", "bytes"]);
  const names = lines.map((l) => l[0]);
  assert.deepEqual(names, [...names].sort());
  return Object.fromEntries(lines.map(([name, ...rest]) => [name, rest]));
}
const without = (t) => Object.fromEntries(Object.entries(t).map(([name, row]) => [name, row.slice(0, 5).join(" ")]));

onEach("ahead, behind and merged, before and after merges", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  // main 1-3 appended, fork at 3; feature 4-6, main 4-6
  const before = without(await table(g));
  assert.deepEqual(before, { feature: "6 main 3 3 no", main: "6 - - - -" });
  await merges(g, "main", "feature");
  assert.deepEqual(without(await table(g)), { feature: "6 main 0 4 yes", main: "7 - - - -" });
  await stock[engine].op(g.ds, "feature", "add", { rows: rows(7000, 1) });
  await stock[engine].op(g.ds, "feature", "fork", { name: "child", from: "feature" });
  const forked = without(await table(g));
  assert.deepEqual(forked, { child: "7 feature 0 0 yes", feature: "7 main 1 4 no", main: "7 - - - -" });
  await merges(g, "feature", "main");
  // child lacks feature's merge and what it brought, main's 4 to 7
  assert.deepEqual(without(await table(g)), { child: "7 feature 0 5 yes", feature: "8 main 2 0 no", main: "7 - - - -" });
  for (const branch of ["child", "feature"]) {
    const s = await status(g, branch),
      [, , ahead, behind] = without(await table(g))[branch].split(" ");
    assert.deepEqual([s.ahead, s.behind], [ahead, behind], `.status of ${branch} says the same`);
  }
  await g.m.unmount();
});

onEach("bytes that only a branch holds: its own files, until a merge takes them over", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    bytes = (dir) =>
      ["data", "_deletions", "_indices"].reduce(
        (n, part) => n + [...filesOf(path.join(dir, part)).values()].reduce((m, f) => m + f.size, 0),
        0,
      );
  const own = bytes(g.storage("feature"));
  assert.equal(Number((await table(g)).feature[5]), own, "nobody else names what lies in its directory");
  await merges(g, "main", "feature");
  const after = Number((await table(g)).feature[5]),
    taken = load(g.ds).fragments.flatMap((f) => [
      ...f.files.filter((x) => x.base !== undefined).map((x) => path.join("data", x.path)),
      ...(f.deletion?.base === undefined ? [] : [path.join("_deletions", f.deletion.path)]),
    ]),
    grafted = taken.reduce((n, p) => n + fs.statSync(path.join(g.storage("feature"), p)).size, 0);
  assert.ok(grafted > 0);
  assert.equal(after, own - grafted, "what main grafted is held by both");
  await g.m.unmount();
});

onEach("awkward names, a branch without versions", async (t, engine) => {
  const g = await mounted(t, "names", engine);
  fs.rmSync(path.join(g.ds, "tree/A/_versions"), { recursive: true });
  const names = Object.keys(await table(g));
  assert.ok(!names.includes("A"));
  for (const name of ["a", "f", "f/data", "ü", "-rf", "main", "main/x"]) assert.ok(names.includes(name), name);
  await g.m.unmount();
});
