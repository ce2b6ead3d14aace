// SPDX-License-Identifier: Apache-2.0
// What other processes do to the data set shows at the next look, without a remount; what is open stays as it was.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { versions } from "../interop/manifest.mjs";
import { errnoOf } from "../harness/control.mjs";
import { converse, must, run } from "../harness/proc.mjs";
import { changed, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, checkView, mounted, onEach } from "../harness/tip.mjs";
import { probePath } from "../harness/workspace.mjs";

const list = async (dir) => (await must(run("ls", ["-1", "--", dir]))).stdout.split("\n").filter(Boolean).sort();

onEach("commits of both engines show at once, each after the look before", async (t, engine) => {
  const g = await mounted(t, "siblings", engine);
  let all = rows(0, 10);
  await checkView(g, "main", all);
  const steps = [
    ["lance10", "add", { rows: rows(20, 2) }, (r) => [...r, ...rows(20, 2)]],
    ["lance12", "delete", { where: "id = 20" }, (r) => without(r, 20)],
    ["lance12", "update", { where: "id = 21", values: { v: "new" } }, (r) => changed(r, 21, { v: "new" })],
    ["lance10", "index", { column: "id" }, (r) => r],
    ["lance10", "optimize", {}, (r) => r],
    ["lance12", "clean", {}, (r) => r],
    ["lance12", "add", { rows: rows(30, 1) }, (r) => [...r, ...rows(30, 1)]],
  ];
  for (const [e, op, args, next] of steps) {
    await stock[e].op(g.ds, "main", op, args);
    all = next(all);
    await checkTip(g, "main", all);
    const shown = (await list(g.m.tree("main", "_versions"))).filter((f) => f.endsWith(".manifest"));
    assert.equal(shown.length, versions(g.ds).length, `manifests after ${op}`);
  }
});

onEach("branches that are made and deleted outside come and go", async (t, engine) => {
  const g = await mounted(t, "siblings", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  const before = await list(g.m.tree("."));
  await assert.rejects(must(run("ls", [g.m.tree("late")])), /No such file/); // a look that must not be remembered
  await op("main", "fork", { name: "late" });
  await checkView(g, "late", rows(0, 10));
  await op("late", "add", { rows: rows(40, 1) });
  await checkView(g, "late", [...rows(0, 10), ...rows(40, 1)]);
  assert.deepEqual(await list(g.m.tree(".")), [...before, "late"].sort());
  await op("main", "drop", { name: "late" });
  assert.deepEqual(await list(g.m.tree(".")), before);
  assert.notEqual((await run("ls", [g.m.tree("late")])).code, 0);
  assert.ok(!(await list(path.join(g.m.mnt, "tables"))).includes("late.lance"));
  await op("main", "fork", { name: "late" }); // the same name, another line
  await checkView(g, "late", rows(0, 10));
});

// Every path into a branch, looked at and opened, so that the kernel knows all of its names.
function warm(g, branch) {
  const out = [g.m.table(branch), g.m.tree(branch)];
  for (const root of [...out])
    for (const dir of ["data", "_versions", "_transactions", "_deletions"]) {
      out.push(path.join(root, dir));
      for (const f of fs.readdirSync(path.join(root, dir))) out.push(path.join(root, dir, f));
    }
  for (const p of [...out, ...out]) if (fs.statSync(p).isFile()) fs.readFileSync(p);
  return out;
}
const isGone = (p) => ["lstatSync", "statSync", "openSync", "accessSync"].map((call) => errnoOf(() => fs[call](p)));

onEach("names that the kernel knows lead nowhere once their branch is gone, and to the new branch of that name", async (t, engine) => {
  const g = await mounted(t, "siblings", engine),
    op = (...a) => stock[engine].op(g.ds, ...a);
  await op("main", "fork", { name: "late" });
  await op("late", "add", { rows: rows(40, 1) });
  const known = warm(g, "late");
  assert.ok(known.length > 20);
  await op("main", "drop", { name: "late" });
  for (const p of known) assert.deepEqual(isGone(p), Array(4).fill("ENOENT"), p);
  await op("main", "fork", { name: "late" });
  await op("late", "add", { rows: rows(50, 2) });
  const own = fs.readdirSync(path.join(g.storage("late"), "data")),
    lost = known.filter((p) => path.basename(path.dirname(p)) === "data" && !fs.existsSync(path.join(g.ds, "data", path.basename(p))));
  assert.ok(lost.length >= 2, "the first branch had a file of its own, by two names");
  for (const p of lost) assert.deepEqual(isGone(p), Array(4).fill("ENOENT"), `${p}, of the branch that is gone`);
  for (const f of own) fs.statSync(g.m.tree("late", "data", f));
  await checkView(g, "late", [...rows(0, 10), ...rows(50, 2)]);
  warm(g, "late");
  await op("main", "drop", { name: "late" }); // and at once, with nothing between
  await op("main", "fork", { name: "late" });
  await checkView(g, "late", rows(0, 10));
});

test("a branch with a new level shows below tree/", async (t) => {
  const g = await mounted(t, "siblings", "lance12");
  await list(g.m.tree("."));
  await stock.lance12.op(g.ds, "main", "fork", { name: "team/a/one" });
  assert.ok((await list(g.m.tree("."))).includes("team"));
  assert.deepEqual(await list(g.m.tree("team")), ["a"]);
  await checkView(g, "team/a/one", rows(0, 10));
});

test("the version hint of a view names its newest version after a commit outside", async (t) => {
  const g = await mounted(t, "siblings", "lance12"),
    hint = async () =>
      JSON.parse((await must(run("cat", [g.m.tree("main", "_versions/latest_version_hint.json")]))).stdout).version;
  assert.equal(await hint(), 1);
  await stock.lance12.op(g.ds, "main", "add", { rows: rows(20, 1) });
  assert.equal(await hint(), 2);
});

// C62: files of a data set never change in place, so a mapping of one that stock removes keeps its bytes.
test("C62 a mapping stays right while stock compacts and cleans and lancefs merges", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    exe = await probePath(),
    out = path.join(g.w.dir, "mapped");
  const [name] = await list(g.m.tree("feature", "data")),
    file = g.m.tree("feature", "data", name);
  const bytes = (await must(run("cat", [file], { encoding: null }))).stdout;
  // The mapped bytes go to a file: `converse` speaks in lines.
  const p = converse("bash", [
    "-c",
    'exec 3>"$3"; "$1" mmap "$2" shared pause | { read -r ready; echo "$ready"; cat >&3; }',
    "sh",
    exe,
    file,
    out,
  ]);
  assert.equal(await p.line(), "mapped");
  await stock.lance12.op(g.ds, "main", "add", { rows: rows(50_000, 1) });
  await must(run("bash", ["-c", 'echo feature > "$1"', "sh", g.m.tree("main", ".merge")]));
  for (const branch of ["feature", "main"]) await stock.lance12.op(g.ds, branch, "clean");
  p.say("go on");
  assert.equal((await p.close()).code, 0);
  assert.deepEqual(fs.readFileSync(out), bytes);
});
