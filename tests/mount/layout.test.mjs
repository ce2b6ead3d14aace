// SPDX-License-Identifier: Apache-2.0
// The tree that a user sees: branches as directories, nested and shadowed names, tables/ for LanceDB.
import assert from "node:assert/strict";
import { test } from "node:test";
import path from "node:path";
import { must, run, sh } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, checkView, mounted, onEach } from "../harness/tip.mjs";
import { ENGINES } from "../harness/workspace.mjs";

const list = async (dir, ...flags) =>
  (await must(run("ls", ["-1", ...flags, "--", dir]))).stdout.split("\n").filter(Boolean).sort();

test("the top: tree, tags, tables and the control file", async (t) => {
  const g = await mounted(t, "chain", "lance12");
  const shown = await list(g.m.mnt, "-A");
  for (const name of ["tree", "tables", ".merge"]) assert.ok(shown.includes(name), `${name} in ${shown}`);
});

onEach(
  "every branch is a directory; a slash is a level; directories that only lead to one hold nothing else",
  async (t, engine) => {
    const g = await mounted(t, "chain", engine);
    assert.deepEqual(await list(g.m.tree("."), "-A"), ["exp", "feature", "idle", "main", "old"]);
    assert.deepEqual(await list(g.m.tree("exp"), "-A"), ["sub"]);
    assert.ok((await list(g.m.tree("exp/sub"))).includes("deep"));
    const tables = [
      "exp%2Fsub%2Fdeep.lance",
      "exp%2Fsub.lance",
      "feature.lance",
      "idle.lance",
      "main.lance",
      "old.lance",
    ];
    assert.deepEqual(await list(path.join(g.m.mnt, "tables"), "-A"), tables.sort());
    for (const b of ["main", "exp/sub/deep"]) {
      assert.equal((await must(run("realpath", [g.m.table(b)]))).stdout.trim(), g.m.tree(b));
      assert.equal((await run("test", ["-L", g.m.table(b)])).code, 0, "a symlink");
      assert.doesNotMatch(
        (await must(run("readlink", [g.m.table(b)]))).stdout,
        /^\//,
        "a relative one, so that bind mounts and containers can follow it",
      );
    }
  },
);

onEach("a branch directory has the parts of a data set, and only its own files in them", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  for (const branch of ["main", "feature", "exp/sub/deep", "idle"]) {
    const shown = await list(g.m.tree(branch));
    for (const name of ["data", "_versions", "_transactions", "_deletions"])
      assert.ok(shown.includes(name), `${branch}: ${shown}`);
    for (const name of ["tree", "_lancefs"]) assert.ok(!shown.includes(name), `${branch} is one data set: ${shown}`);
    for (const f of await list(g.m.tree(branch, "data"), "-A")) assert.match(f, /\.lance$/);
    for (const f of await list(g.m.tree(branch, "_versions"), "-A"))
      assert.match(f, /^(\d+\.manifest|latest_version_hint\.json)$/);
    for (const f of await list(g.m.tree(branch, "_deletions"), "-A")) assert.match(f, /^\d+-\d+-\d+\.(arrow|bin)$/);
  }
  // fragments 0, 1 (main), 2 (feature), 3 (exp/sub), 4 (its own); deletions in 0, 1, 2
  assert.equal((await list(g.m.tree("exp/sub/deep", "data"))).length, 5);
  assert.equal((await list(g.m.tree("exp/sub/deep", "_deletions"))).length, 3);
  assert.equal((await list(g.m.tree("idle", "data"))).length, 3);
});

test("what is reachable by name but not listed does not show", async (t) => {
  const g = await mounted(t, "chain", "lance12");
  const shown = await list(g.m.tree("feature"), "-A");
  for (const name of [".versions", ".preview", ".conflicts"]) assert.ok(!shown.includes(name), name);
});

test("a name that is no branch is ENOENT", async (t) => {
  const g = await mounted(t, "chain", "lance12");
  for (const p of [
    "tree/nosuch",
    "tree/exp/nosuch",
    "tree/Feature",
    "tables/nosuch.lance",
    "tables/exp.lance",
    "tree/feature/data/nosuch.lance",
    "nosuch",
  ]) {
    const r = await run("ls", ["-d", path.join(g.m.mnt, p)], { env: { LC_ALL: "C" } });
    assert.match(r.stderr, /No such file or directory/, p);
  }
});

// C19. The directory of f/data would be f's data/, main/.merge would be main's control file: the layout wins, and such a
// branch is shown with its whole name percent-encoded.
const PLAIN = ["f", ".merge", "main/x", "tree/main", "ü", "-rf", "A", "a", "a/b/c/d/e/f", "HEAD", "_refs", "0"];
const SHADOWED = ["f/data", "f/_versions", "f/_deletions", "f/.merge", "main/.merge"];
const encoded = (b) => b.replaceAll("/", "%2F");
onEach(
  "C19 names: every branch is listed and reached, shadowed ones by their percent-encoded names",
  async (t, engine) => {
    const g = await mounted(t, "names", engine),
      all = [...rows(0, 10), ...rows(100, 1, "b")];
    const top = await list(g.m.tree("."), "-A");
    assert.deepEqual(
      top,
      [...new Set([...PLAIN.map((b) => b.split("/")[0]), "main", ...SHADOWED.map(encoded)])].sort(),
    );
    for (const b of PLAIN) await checkView(g, b, all);
    for (const b of SHADOWED) await checkView(g, b, all, encoded(b));
    await checkTip(g, "main", rows(0, 10));
  },
);

onEach("C19 names: f's own folders show f's files, not the branch that lies in them", async (t, engine) => {
  const g = await mounted(t, "names", engine);
  for (const f of await list(g.m.tree("f", "data"), "-A")) assert.match(f, /\.lance$/);
  assert.equal((await list(g.m.tree("f", "data"))).length, 2);
  for (const f of await list(g.m.tree("f", "_versions"), "-A"))
    assert.match(f, /^(\d+\.manifest|latest_version_hint\.json)$/);
  assert.deepEqual(await list(g.m.tree("f", "_deletions"), "-A"), []);
  assert.equal((await run("test", ["-f", g.m.tree("f", ".merge")])).code, 0, "f/.merge is f's control file");
  assert.equal((await run("test", ["-f", g.m.tree("main", ".merge")])).code, 0, "main/.merge is main's control file");
  assert.equal(
    (await run("test", ["-d", g.m.tree("main%2F.merge")])).code,
    0,
    "the branch of that name is a directory",
  );
});

onEach("C19 names: directories that refused creations left behind are no branches", async (t, engine) => {
  const g = await mounted(t, "names", engine);
  for (const name of ["sp ace", "a..b", "x%2Fy", "x.lock"])
    assert.notEqual((await run("ls", [g.m.tree(name)])).code, 0, name);
});

test("C19 names: ls -aR and find walk the whole tree", async (t) => {
  const g = await mounted(t, "names", "lance10");
  await must(sh('ls -aR -- "$1/tree" > /dev/null && find "$1" > /dev/null', [g.m.mnt]));
});

onEach("LanceDB opens tables/ as a database and lists its tables", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  for (const e of ENGINES) {
    const read = await stock[e].read(g.m.table("feature"));
    assert.equal(read.rows.length, 283);
  }
});

test("a data set with main alone", async (t) => {
  const g = await mounted(t, "clones", "lance12", { generated: { name: "a" } });
  assert.deepEqual(await list(g.m.tree("."), "-A"), ["main"]);
});
