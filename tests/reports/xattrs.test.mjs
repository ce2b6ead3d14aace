// SPDX-License-Identifier: Apache-2.0
// Extended attributes: where files and branches are, as the decoder and the storage itself have it.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load, tip } from "../interop/manifest.mjs";
import { must, run } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { merges, mounted, onEach } from "../harness/tip.mjs";
import { needs } from "../harness/workspace.mjs";
import { unchanged } from "../harness/reports.mjs";

// { name: value } as getfattr -d prints them
async function dump(file) {
  const r = await must(run("getfattr", ["-d", "--absolute-names", "--", file]));
  return Object.fromEntries(
    r.stdout.split("\n").map((l) => /^user\.lancefs\.([a-z]+)="(.*)"$/.exec(l)).filter(Boolean).map((m) => [m[1], m[2]]),
  );
}
const missing = async (file, name) =>
  (await run("getfattr", ["-n", name, "--absolute-names", "--", file], { env: { LC_ALL: "C" } })).stderr;

onEach("branch directories tell version, parent, uuid and storage", async (t, engine) => {
  if (!(await needs(t, "getfattr"))) return;
  const g = await mounted(t, "chain", engine);
  const uuid = (b) =>
    JSON.parse(fs.readFileSync(path.join(g.ds, "_refs/branches", `${b.replaceAll("/", "%2F")}.json`))).identifier.version_mapping.at(-1)[1];
  const check = async () => {
    assert.deepEqual(await dump(g.m.tree("main")), { version: String(tip(g.ds)), uuid: "main", storage: g.ds });
    for (const [b, parent] of [["feature", "main@2"], ["exp/sub", "feature@4"], ["old", "main@1"]])
      assert.deepEqual(await dump(g.m.tree(b)), { version: String(tip(g.storage(b))), parent, uuid: uuid(b), storage: g.storage(b) });
  };
  await unchanged(g, check);
  assert.equal((await dump(g.m.tree("feature", ".versions", "3"))).version, "3", "one version tells its own number");
  await stock[engine].op(g.ds, "main", "add", { rows: rows(60, 1) });
  await check();
  assert.equal((await must(run("getfattr", ["-n", "user.lancefs.version", "--only-values", "--absolute-names", g.m.tree("main")]))).stdout, String(tip(g.ds)));
});

onEach("data files tell source, base, fragment and rows, through every branch that shows them", async (t, engine) => {
  if (!(await needs(t, "getfattr"))) return;
  const g = await mounted(t, "chain", engine);
  const check = async (b) => {
    const m = load(g.storage(b));
    for (const f of m.fragments)
      for (const x of f.files) {
        const shown = g.m.tree(b, "data", x.path),
          a = await dump(shown),
          st = fs.statSync(a.source);
        assert.equal(path.basename(a.source), x.path);
        assert.equal(st.ino, fs.statSync(path.join(x.base === undefined ? g.storage(b) : m.bases.find((y) => y.id === x.base).path, "data", x.path)).ino);
        assert.equal(a.source, path.join(a.base, "data", x.path));
        assert.equal(Number(a.rows), f.rows);
        const own = a.fragment.split(" ").map((w) => w.split(":"));
        const value = own.length === 1 && own[0].length === 1 ? own[0][0] : own.find(([name]) => name === b)[1];
        assert.equal(Number(value), f.id, `${b}: ${a.fragment}`);
      }
  };
  await unchanged(g, async () => {
    for (const b of ["main", "feature", "exp/sub/deep"]) await check(b);
  });
  await merges(g, "main", "exp/sub/deep"); // fragments get other numbers there
  for (const b of ["main", "feature", "exp/sub/deep"]) await check(b);
  const deletion = g.m.tree("main", "_deletions", fs.readdirSync(g.m.tree("main", "_deletions"))[0]);
  const d = await dump(deletion);
  assert.deepEqual(Object.keys(d).sort(), ["base", "source"]);
  assert.ok(fs.statSync(d.source).isFile());
});

onEach("what is not there: ENODATA for user.*, not supported for the rest; nothing can be set", async (t, engine) => {
  if (!(await needs(t, "getfattr"))) return;
  const g = await mounted(t, "chain", engine);
  assert.match(await missing(g.m.tree("main"), "user.lancefs.parent"), /No such attribute/);
  assert.match(await missing(g.m.tree("main"), "user.other"), /No such attribute/);
  assert.match(await missing(g.m.tree("main", ".log"), "user.lancefs.source"), /No such attribute/);
  for (const name of ["security.selinux", "system.posix_acl_access", "trusted.x"]) assert.match(await missing(g.m.tree("main"), name), /not supported|No such attribute/);
  for (const file of [g.m.mnt, g.m.tree("main", ".log"), g.m.tree("main", "data"), g.m.tree("main", ".merge")]) assert.deepEqual(await dump(file), {});
  assert.notEqual((await run("setfattr", ["-n", "user.lancefs.version", "-v", "9", g.m.tree("main")])).code, 0);
  const m = load(g.ds),
    manifest = await dump(g.m.tree("main", "_versions", m.name));
  assert.deepEqual(manifest, { source: m.file });
});
