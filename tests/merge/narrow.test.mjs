// SPDX-License-Identifier: Apache-2.0
// The transaction of a merge is the narrowest Lance operation that says what it does (merge-semantics section 8): a stock
// writer that has read the version before it fares as if stock Lance itself had made that commit. The measure is the same
// race on a table that lancefs never touched.
import assert from "node:assert/strict";
import path from "node:path";
import { configure } from "../interop/configure.mjs";
import { load } from "../interop/manifest.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, onEach } from "../harness/tip.mjs";
import { merge, scratch } from "../harness/verbs.mjs";

const LOTS = [rows(0, 10), rows(10, 10)];

// What the branch did, and what the commit of its merge must be; the same done by hand on a table.
const MERGED = {
  append: ["append", "add", { rows: rows(100, 2, "f") }],
  delete: ["delete", "delete", { where: "id = 3" }],
  update: ["update", "update", { where: "id = 3", values: { v: "up" } }],
  "add column": ["merge", "addColumn", { name: "a", sql: "n + 1" }],
  "drop column": ["project", "dropColumns", { names: ["n"] }],
  index: ["create_index", "index", { column: "n" }],
  config: ["update_config", "configure", { config: { k: "1" } }],
};
// What the writer does, that read the version before.
const LATE = {
  append: ["add", { rows: rows(200, 1, "w") }],
  "delete elsewhere": ["delete", { where: "id = 15" }],
  "delete of the same row": ["delete", { where: "id = 3" }],
  "update elsewhere": ["update", { where: "id = 16", values: { v: "late" } }],
  index: ["index", { column: "id" }],
};

const commit = (engine, ds, branch, op, args) =>
  op === "configure" ? configure(branch === "main" ? ds : path.join(ds, "tree", branch), args) : stock[engine].op(ds, branch, op, args);
// The version before is read, `between` commits, and the late one: "came through", or that it was told.
async function race(engine, ds, branch, between, [op, args]) {
  const writer = await stock[engine].keep(ds, branch);
  await writer.op("version");
  await between();
  const r = await writer.op(op, args).then(
    () => "came through",
    (e) => (assert.match(e.message, /conflict|incompatible|retry|concurrent/i), "told"),
  );
  await writer.close();
  return r;
}

for (const [what, [operation, op, args]] of Object.entries(MERGED))
  onEach(`merge of ${what}: the commit is ${operation}, and who races with it fares as against stock`, async (t, engine) => {
    const g = await scratch(t, engine, ...LOTS),
      fates = {};
    await g.fork("f");
    await commit(engine, g.ds, "f", op, args);
    await g.op("main", "delete", { where: "id = 19" }); // no merge is a fast-forward
    for (const [k, [late, step]] of Object.entries(LATE).entries()) {
      for (const side of ["a", "b"]) await g.op("main", "fork", { name: `${side}${k}`, from: "main" });
      const measure = await race(engine, g.ds, `a${k}`, () => commit(engine, g.ds, `a${k}`, op, args), step),
        is = await race(
          engine,
          g.ds,
          `b${k}`,
          async () => {
            await merge(g, `b${k}`, "f");
            assert.equal(load(g.storage(`b${k}`)).transaction.op, operation);
          },
          step,
        );
      assert.equal(is, measure, `${late} against a merge of ${what}`);
      fates[late] = is;
      const { columns, rows: wanted } = await stock[engine].read(g.ds, `a${k}`);
      await checkTip(g, `b${k}`, wanted.map((r) => Object.fromEntries(r.map((v, i) => [columns[i], v]))));
    }
    assert.equal(fates.append, "came through", JSON.stringify(fates));
    t.diagnostic(Object.entries(fates).map(([late, fate]) => `${late}: ${fate}`).join("; "));
  });

// Who sets another key at the same time passes: an UpdateConfig names the keys that differ, and no others.
onEach("merge of maps: the keys that changed, that went, and the lineage; no map as a whole", async (t, engine) => {
  const g = await scratch(t, engine, ...LOTS);
  configure(g.ds, { config: { stays: "0", changes: "0", goes: "0" }, table: { stays: "0" }, schema: { stays: "0" } });
  await g.fork("f");
  configure(path.join(g.ds, "tree", "f"), { config: { changes: "1", goes: null, comes: "" } });
  await g.op("main", "delete", { where: "id = 19" });
  await merge(g, "main", "f");
  const { tree, op } = load(g.ds).transaction,
    maps = tree.update_config[0];
  assert.equal(op, "update_config");
  assert.deepEqual(Object.keys(maps).sort(), ["config_updates", "table_metadata_updates"]);
  const entries = (m) => Object.fromEntries(m[0].update_entries.map((e) => [e.key[0], e.value?.[0] ?? null]));
  assert.deepEqual(entries(maps.config_updates), { changes: "1", goes: null, comes: "" });
  assert.deepEqual(Object.keys(entries(maps.table_metadata_updates)), ["lancefs.vector"]);
  for (const m of Object.values(maps)) assert.equal(m[0].replace, undefined, "no map as a whole");
  assert.deepEqual(load(g.ds).config, { stays: "0", changes: "1", comes: "" });
});
