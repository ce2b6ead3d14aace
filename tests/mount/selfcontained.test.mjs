// SPDX-License-Identifier: Apache-2.0
// A branch directory is a complete data set: its manifests name no base, copies of it stand alone, and stock Lance reads
// it as it reads the branch in the storage.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load, manifests, parseManifest } from "../interop/manifest.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { changed, expectRows, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkView, mounted, onEach } from "../harness/tip.mjs";
import { ENGINES, generate, place, workspace } from "../harness/workspace.mjs";

const BASE_PATHS = 16;

// The bytes of files of the mount, by another process.
const bytesOf = async (...files) => (await must(run("cat", ["--", ...files], { encoding: null }))).stdout;
const listing = async (dir) => (await must(run("ls", ["-1A", "--", dir]))).stdout.split("\n").filter(Boolean);

// Decodes every manifest that a branch directory of the mount shows. Read in one go, and taken apart by the sizes that
// stat tells: they are exact, or this fails.
async function shownManifests(g, shown) {
  const dir = g.m.tree(shown, "_versions"),
    names = (await listing(dir)).filter((n) => n.endsWith(".manifest")),
    files = names.map((n) => path.join(dir, n));
  const sizes = (await must(run("stat", ["-c", "%s", "--", ...files]))).stdout.trim().split("\n").map(Number),
    bytes = await bytesOf(...files);
  assert.equal(bytes.length, sizes.reduce((a, b) => a + b), `${shown}: stat tells the exact sizes`);
  let at = 0;
  return names.map((name, i) => Object.assign(parseManifest(bytes.subarray(at, (at += sizes[i]))), { name }));
}

const BRANCHES = {
  overlap_deletes: ["main", "feature"],
  chain: ["main", "feature", "exp/sub", "exp/sub/deep", "old", "idle"],
  bitmap_deletes: ["feature"],
  v1_names: ["main", "feature"],
  index_on_branch: ["main", "feature", "feature/child"],
  whole_fragments: ["gone", "empty"],
  stable_row_ids: ["main", "feature"],
  add_columns: ["score", "clash"],
  drop_vs_edit: ["drop", "gap", "rename"],
  overwrite_restore: ["ow", "re"],
  cleaned: ["main", "early", "late"],
  compaction: ["main", "feature", "compacted"],
};
for (const [generator, branches] of Object.entries(BRANCHES)) {
  onEach(`${generator}: manifests without bases, the same rows as from the storage`, async (t, engine) => {
    const g = await mounted(t, generator, engine);
    for (const branch of branches) {
      const stored = manifests(g.storage(branch)),
        shown = await shownManifests(g, branch);
      assert.deepEqual(
        shown.map((m) => m.version).sort((a, b) => a - b),
        stored.map((m) => m.version),
        `versions of ${branch}`,
      );
      assert.deepEqual(shown.map((m) => m.name).sort(), stored.map((m) => m.name).sort(), "names as stored");
      for (const m of shown) checkFlat(m, load(g.storage(branch), m.version));
      for (const e of ENGINES) await sameRows(g, branch, e);
    }
  });
}

// A flattened manifest says the same of the table as the stored one, without a word about places.
function checkFlat(m, stored) {
  assert.deepEqual(m.bases, []);
  assert.equal(m.branch, undefined);
  assert.equal((m.flags.reader | m.flags.writer) & BASE_PATHS, 0);
  assert.deepEqual(
    { ...stored.flags, reader: stored.flags.reader & ~BASE_PATHS, writer: stored.flags.writer & ~BASE_PATHS },
    m.flags,
  );
  for (const x of [...m.fragments.flatMap((f) => [...f.files, f.deletion]), ...m.indices])
    assert.equal(x?.base, undefined, "no base_id");
  const what = (f) => ({
    ...f,
    files: f.files.map((x) => ({ ...x, base: undefined })),
    deletion: f.deletion && { ...f.deletion, base: undefined },
  });
  assert.deepEqual(m.fragments.map(what), stored.fragments.map(what));
  assert.deepEqual(m.fields, stored.fields);
  assert.deepEqual(m.config, stored.config);
  assert.deepEqual(
    m.indices.map((i) => i.name),
    stored.indices.map((i) => i.name),
  );
  assert.equal(m.version, stored.version);
  assert.equal(m.maxFragment, stored.maxFragment);
  assert.ok(!JSON.stringify(m.transaction?.tree ?? {}).includes("base_id"), "the transaction names no base either");
}

async function sameRows(g, branch, engine) {
  // Stock cannot read the index of a branch of a branch in the storage; its rows are compared elsewhere.
  const stored = await stock[engine].read(g.ds, branch).catch((e) => e);
  const shown = await stock[engine].read(g.m.tree(branch));
  assert.deepEqual(shown.wrong, [], `${branch}: filters through an index`);
  assert.equal(shown.count, shown.rows.length);
  if (stored instanceof Error) return assert.match(stored.message, /Not found/, `${branch} in the storage`);
  assert.deepEqual([shown.version, shown.columns, shown.rows], [stored.version, stored.columns, stored.rows], branch);
}

onEach(
  "index_on_branch: filters through inherited indexes work in the views, a branch of a branch too",
  async (t, engine) => {
    const g = await mounted(t, "index_on_branch", engine);
    const feature = [...changed(rows(0, 1000), span(0, 4), { n: -1 }), ...rows(5000, 10, "f")];
    await checkView(g, "main", [...rows(0, 1000), ...rows(2000, 10, "m")]);
    await checkView(g, "feature", feature);
    await checkView(g, "feature/child", [...feature, ...rows(6000, 3, "c")]);
    for (const e of ENGINES)
      assert.deepEqual(
        (await stock[e].read(g.m.tree("feature/child"))).indexes.sort(),
        ["id_idx", "n_idx"],
        "both were checked",
      );
  },
);

onEach("clones: an index that lies in another data set is found", async (t, engine) => {
  const g = await mounted(t, "clones", engine, { generated: { name: "ib" } });
  await checkView(g, "main", rows(0, 300));
  await checkView(g, "feature", rows(0, 300));
});

onEach("cp -r of a branch is an independent data set, also when the original is gone", async (t, engine) => {
  const w = workspace(t),
    g = await generate(w, "chain", engine);
  g.m = await mount(w, g.ds);
  const deep = [
    ...without(rows(0, 10), 1, 6),
    ...rows(100, 2, "f").slice(1),
    ...rows(200, 2, "s"),
    ...rows(300, 2, "d"),
  ];
  const copies = {};
  for (const [branch, name] of [
    ["exp/sub/deep", "deep"],
    ["feature", "feature"],
    ["main", "main"],
  ]) {
    copies[name] = path.join(w.dir, "copies", `${name}.lance`);
    fs.mkdirSync(path.dirname(copies[name]), { recursive: true });
    await must(run("cp", ["-r", g.m.tree(branch), copies[name]]));
  }
  await g.m.unmount();
  await must(run("rm", ["-rf", g.root]));
  for (const e of ENGINES) {
    expectRows(await stock[e].read(copies.deep), deep, `the copy of exp/sub/deep, read by ${e}`);
    expectRows(
      await stock[e].read(copies.feature),
      [...without(rows(0, 10), 1), ...rows(100, 2, "f")],
      `the copy of feature, read by ${e}`,
    );
    expectRows(
      await stock[e].read(copies.main),
      [...rows(0, 10), ...rows(10, 1, "m")],
      `the copy of main, read by ${e}`,
    );
  }
  // Stock goes on with the copy: append, delete, compact.
  await stock[engine].op(copies.deep, "main", "add", { rows: rows(900, 1) });
  await stock[engine].op(copies.deep, "main", "delete", { where: "id = 300" });
  await stock[engine].op(copies.deep, "main", "optimize");
  for (const e of ENGINES)
    expectRows(
      await stock[e].read(copies.deep),
      [...without(deep, 300), ...rows(900, 1)],
      `after stock commits, read by ${e}`,
    );
  // A copy mounts and merges by itself: it has no memory of branches.
  const again = await mount(w, place(copies.deep).ds);
  assert.deepEqual(await listing(path.join(again.mnt, "tree")), ["main"]);
});

test("cp -a, tar and rsync copy a branch whole too", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  const rowsOf = [...without(rows(0, 300), span(10, 19), span(150, 159)), ...rows(1000, 3, "f")];
  const to = (name) => path.join(g.w.dir, `${name}.lance`);
  await must(run("cp", ["-a", g.m.tree("feature"), to("a")]));
  fs.mkdirSync(to("b"));
  await must(
    run("bash", ["-c", 'set -o pipefail; tar -C "$1" -cf - . | tar -C "$2" -xf -', "sh", g.m.tree("feature"), to("b")]),
  );
  for (const name of ["a", "b"]) expectRows(await stock.lance12.read(to(name)), rowsOf, name);
});

test("the stored manifests are never changed by looking", async (t) => {
  const g = await mounted(t, "chain", "lance10"),
    before = fs.readFileSync(load(g.storage("feature")).file);
  for (const b of ["main", "feature", "exp/sub/deep"]) await stock.lance12.read(g.m.tree(b));
  assert.deepEqual(fs.readFileSync(load(g.storage("feature")).file), before);
});
