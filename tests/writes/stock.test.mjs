// SPDX-License-Identifier: Apache-2.0
// Stock Lance writes through the mount as it writes on the storage. A twin of the data set takes the same commits from the
// same engine directly: what each commit stores (base paths and base ids, branch, flags, fragments, indexes, the
// transaction) must be the same but for random names, and both engines read the same rows everywhere.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load, manifests, tip } from "../interop/manifest.mjs";
import { must, run } from "../harness/proc.mjs";
import { changed, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, checkTip, merges, mounted, onEach } from "../harness/tip.mjs";
import { ENGINES, place } from "../harness/workspace.mjs";

// The mounted data set, and a copy of it that nobody mounts. The copy's base paths lead into the first one, as they did.
async function twins(t, generator, engine) {
  const g = await mounted(t, generator, engine),
    dir = path.join(g.w.dir, "twin");
  fs.mkdirSync(dir);
  await must(run("cp", ["-a", g.ds, dir]));
  const twin = place(path.join(dir, path.basename(g.ds)));
  return { ...g, twin, known: names(g.ds) };
}
// Every file's name: what a commit did not make.
function names(dir) {
  return new Set(fs.readdirSync(dir, { recursive: true }).map((p) => path.basename(String(p))));
}

// A message as a tree, without what is random: names of new files, uuids, ids of new deletion files, times, and the order
// of lists (stock's lists of changed fragments come out of hash tables).
const RANDOM = /^(uuid|timestamp|created_at|id@deletion_file|transaction_file|transaction_section|index_section)$/;
function plain(known, tree, parent) {
  if (typeof tree !== "object") return tree;
  if (Array.isArray(tree)) {
    const list = tree.map((x) => plain(known, x, parent));
    return typeof list[0] === "object" ? list.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : list;
  }
  const out = {};
  for (const [key, value] of Object.entries(tree)) {
    if (RANDOM.test(key) || RANDOM.test(`${key}@${parent}`)) continue;
    out[key] = key === "path" && parent !== "base_paths" && !known.has(value[0]) ? "new" : plain(known, value, key);
  }
  return out;
}
function stored(known, dir, version) {
  const m = load(dir, version);
  const { transaction } = m;
  assert.ok(transaction, "the version tells its transaction");
  return {
    manifest: plain(known, m.tree),
    transaction: plain(known, transaction.tree),
    inFile: m.transactionFile ? fs.existsSync(path.join(dir, "_transactions", m.transactionFile)) : undefined,
    indices: m.indices.map(({ name, base }) => `${name} in base ${base}`).sort(),
  };
}

// One commit by `engine` (it can be several versions) through the mount, and on the twin.
async function both(g, engine, branch, op, args) {
  const from = tip(g.storage(branch));
  await stock[engine].op(g.m.table(branch), "main", op, args);
  await stock[engine].op(g.twin.ds, branch, op, args);
  const to = tip(g.storage(branch));
  assert.ok(to > from, `${op} made a version`);
  assert.equal(tip(g.twin.storage(branch)), to, `${op} made as many versions on the storage`);
  for (let v = from + 1; v <= to; v++)
    assert.deepEqual(
      stored(g.known, g.storage(branch), v),
      stored(g.known, g.twin.storage(branch), v),
      `${op} by ${engine}: version ${v} of ${branch}, through the mount and on the storage`,
    );
  assert.deepEqual(
    manifests(g.storage(branch)).map((m) => m.name),
    manifests(g.twin.storage(branch)).map((m) => m.name),
  );
}

const FEATURE = (g) => stock.lance12.read(g.ds, "feature").then((r) => r.rows.map(([id, v, n]) => ({ id, v, n })));

for (const branch of ["main", "feature", "exp/sub/deep"])
  onEach(`chain: every kind of commit on ${branch} is stored as on the storage`, async (t, engine) => {
    const g = await twins(t, "chain", engine);
    let all = (await stock[engine].read(g.ds, branch)).rows.map(([id, v, n]) => ({ id, v, n }));
    const step = async (op, args, next, by = engine) => {
      await both(g, by, branch, op, args);
      all = next ?? all;
      await checkTip(g, branch, all, { view: false });
    };
    const more = rows(900, 3, "w"),
      other = engine === "lance10" ? "lance12" : "lance10";
    await step("add", { rows: more }, [...all, ...more]);
    await step("delete", { where: "id IN (0, 901)" }, without(all, 0, 901));
    await step("update", { where: "id IN (2, 902)", values: { v: "up" } }, changed(all, [2, 902], { v: "up" }));
    await step("mergeInsert", { on: "id", rows: [{ id: 3, v: "in", n: 30 }, { id: 950, v: "in", n: 50 }] }, [
      ...changed(all, 3, { v: "in", n: 30 }),
      { id: 950, v: "in", n: 50 },
    ]);
    await step("index", { column: "id" });
    await step("addColumn", { name: "m", sql: "id * 2" }, all.map((r) => ({ ...r, m: r.id * 2 })));
    await step("alter", { path: "m", rename: "twice" }, all.map(({ m, ...r }) => ({ ...r, twice: m })));
    await step("add", { rows: [{ id: 960, v: "o", n: 1, twice: 5 }] }, [...all, { id: 960, v: "o", n: 1, twice: 5 }], other);
    await step("dropColumns", { names: ["twice"] }, all.map(({ twice: _, ...r }) => r));
    await step("optimize", {});
    await checkTip(g, branch, all);
    await checkThenUnmount(g, { [branch]: all });
  });

onEach("a restore brings back base paths that the newest version had dropped", async (t, engine) => {
  const g = await twins(t, "chain", engine),
    before = tip(g.storage("feature")),
    all = await FEATURE(g);
  await both(g, engine, "feature", "overwrite", { rows: rows(0, 4, "o") });
  await checkTip(g, "feature", rows(0, 4, "o"));
  await both(g, engine, "feature", "restore", { version: before });
  await checkTip(g, "feature", all);
  await both(g, engine, "feature", "add", { rows: rows(970, 1, "w") });
  await checkThenUnmount(g, { feature: [...all, ...rows(970, 1, "w")] });
});

onEach("after a graft: commits through the mount keep the base path of the line, and the next merge goes on", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await merges(g, "main", "feature");
  const merged = (await stock[engine].read(g.ds, "main")).rows.map(([id, v, n]) => ({ id, v, n })),
    bases = load(g.ds).bases;
  assert.ok(bases.length > 0, "the merge grafted");
  const more = rows(900, 2, "w");
  await stock[engine].op(g.m.table("main"), "main", "add", { rows: more });
  await stock[engine].op(g.m.table("main"), "main", "delete", { where: "id = 900" });
  assert.deepEqual(load(g.ds).bases, bases);
  await stock[engine].op(g.m.table("feature"), "main", "add", { rows: rows(800, 1, "f") });
  await merges(g, "main", "feature");
  await checkThenUnmount(g, { main: [...merged, ...without(more, 900), ...rows(800, 1, "f")] });
});

for (const generator of ["stable_row_ids", "v1_names", "index_on_branch", "nested_types"])
  onEach(`${generator}: a delete and a compaction through the mount are stored as on the storage`, async (t, engine) => {
    const g = await twins(t, generator, engine);
    for (const branch of ["main", "feature"]) {
      await both(g, engine, branch, "delete", { where: "id = 1" });
      await both(g, engine, branch, "optimize", {});
      for (const e of ENGINES) {
        const [shown, there] = [await stock[e].read(g.m.table(branch)), await stock[e].read(g.ds, branch)];
        assert.ok(there.count > 0);
        assert.deepEqual(shown, there);
        assert.deepEqual(there.wrong, [], "filters through indexes");
      }
    }
    await g.m.unmount();
  });
