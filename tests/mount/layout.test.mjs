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
  },
);

// A name of LanceDB's table has no % in it, so a branch with a slash has a second name that LanceDB takes.
onEach("tables/ has a link to each branch, and one with `..` where the name has a slash", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  const TABLES = {
    "exp%2Fsub%2Fdeep.lance": "exp/sub/deep",
    "exp%2Fsub.lance": "exp/sub",
    "exp..sub..deep.lance": "exp/sub/deep",
    "exp..sub.lance": "exp/sub",
    "feature.lance": "feature",
    "idle.lance": "idle",
    "main.lance": "main",
    "old.lance": "old",
  };
  const tables = path.join(g.m.mnt, "tables");
  assert.deepEqual(await list(tables, "-A"), Object.keys(TABLES).sort());
  for (const [name, branch] of Object.entries(TABLES)) {
    const link = path.join(tables, name);
    assert.equal((await must(run("realpath", [link]))).stdout.trim(), g.m.tree(branch));
    assert.equal((await run("test", ["-L", link])).code, 0, "a symlink");
    assert.doesNotMatch(
      (await must(run("readlink", [link]))).stdout,
      /^\//,
      "a relative one, so that bind mounts and containers can follow it",
    );
  }
});

onEach("two branches that would have one name with `..` in tables/ have none", async (t, engine) => {
  const g = await mounted(t, "siblings", engine),
    tables = path.join(g.m.mnt, "tables");
  for (const name of ["p/.q", "p./q", "p/q"]) await stock[engine].op(g.ds, "main", "fork", { name });
  const shown = (await list(tables, "-A")).filter((f) => f.startsWith("p"));
  assert.deepEqual(shown, ["p%2F.q.lance", "p%2Fq.lance", "p.%2Fq.lance", "p..q.lance"]);
  for (const name of ["p...q.lance", "p%2fq.lance", "p/q.lance", "p.lance"])
    assert.notEqual((await run("ls", ["-d", path.join(tables, name)])).code, 0, name);
  await checkView(g, "p/q", rows(0, 10));
  await stock[engine].op(g.ds, "main", "drop", { name: "p/.q" });
  await checkView(g, "p./q", rows(0, 10)); // the name is one branch's again
});

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
// As long as the name of a ref file can be; Lance 12 itself cannot make it, since its temporary name is longer.
const LONGEST = { lance10: ["n".repeat(240)], lance12: [] };
onEach(
  "C19 names: every branch is listed and reached, shadowed ones by their percent-encoded names",
  async (t, engine) => {
    const g = await mounted(t, "names", engine),
      all = [...rows(0, 10), ...rows(100, 1, "b")],
      plain = [...PLAIN, ...LONGEST[engine]];
    const top = await list(g.m.tree("."), "-A");
    assert.deepEqual(
      top,
      [...new Set([...plain.map((b) => b.split("/")[0]), "main", ...SHADOWED.map(encoded)])].sort(),
    );
    for (const b of plain) await checkView(g, b, all);
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

onEach("LanceDB opens tables/ as a database, lists its tables and opens each", async (t, engine) => {
  const g = await mounted(t, "chain", engine);
  for (const e of ENGINES) {
    const names = await stock[e].tables(path.join(g.m.mnt, "tables"));
    assert.deepEqual(
      names.filter((n) => !n.includes("%")),
      ["exp..sub", "exp..sub..deep", "feature", "idle", "main", "old"],
    );
    for (const n of names.filter((x) => !x.includes("%"))) {
      const [byTable, byTree] = [g.m.table(n), g.m.tree(n.replaceAll("..", "/"))];
      assert.deepEqual((await stock[e].read(byTable)).rows, (await stock[e].read(byTree)).rows, n);
    }
  }
});

test("a data set with main alone", async (t) => {
  const g = await mounted(t, "clones", "lance12", { generated: { name: "a" } });
  assert.deepEqual(await list(g.m.tree("."), "-A"), ["main"]);
});
