// SPDX-License-Identifier: Apache-2.0
// Tags that stock Lance makes inside a view: the data set's, on the view's branch, as `tags.create` on the storage makes them.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { OVERLAP } from "../harness/rows.mjs";
import { errnoOf } from "../harness/control.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, mounted, onEach } from "../harness/tip.mjs";
import { difference, ENGINES, snapshot } from "../harness/workspace.mjs";

const ref = (g, name) => path.join(g.ds, "_refs/tags", `${name}.json`);
const json = (file) => JSON.parse(fs.readFileSync(file, "utf8"));
const ask = (engine, dir, branch, op, args = {}) => stock[engine].op(dir, branch, op, args).then((r) => r.value ?? r);

for (const branch of ["main", "feature"])
  onEach(`tags of ${branch}: made, listed, read, moved and deleted through the mount`, async (t, engine) => {
    const g = await mounted(t, "overlap_deletes", engine),
      here = (op, args = {}, e = engine) => ask(e, g.m.table(branch), "main", op, args),
      there = (op, args = {}, e = engine) => ask(e, g.ds, branch, op, args);
    await here("tag", { name: "v1", version: 4 });
    await there("tag", { name: "plain", version: 4 });
    // what the mount stored is what stock Lance stores, but for its times
    const timeless = ({ createdAt: _, updatedAt: __, ...rest }) => rest;
    assert.deepEqual(timeless(json(ref(g, "v1"))), timeless(json(ref(g, "plain"))));
    assert.equal(json(ref(g, "v1")).branch, branch === "main" ? null : branch);
    assert.match(json(ref(g, "v1")).createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
    assert.equal(fs.readlinkSync(path.join(g.m.mnt, "tags/v1")), `../tree/${branch}/.versions/4`);
    for (const e of ENGINES) {
      assert.deepEqual(await here("tags", {}, e), { plain: 4, v1: 4 });
      assert.deepEqual(await there("tags", {}, e), { plain: 4, v1: 4 });
      assert.equal(await here("countAt", { tag: "v1" }, e), await there("countAt", { tag: "plain" }, e));
    }
    await assert.rejects(here("tag", { name: "v1", version: 5 }), /exist/i);
    await assert.rejects(here("tag", { name: "none", version: 99 }), /not found|not exist/i);
    await here("retag", { name: "v1", version: 5 });
    assert.equal(json(ref(g, "v1")).version, 5);
    assert.deepEqual(await there("tags"), { plain: 4, v1: 5 });
    await here("untag", { name: "v1" });
    assert.ok(!fs.existsSync(ref(g, "v1")));
    await assert.rejects(here("untag", { name: "v1" }), /not exist|not found/i);
    await here("untag", { name: "plain" });
    assert.deepEqual(await there("tags"), {});
    assert.deepEqual(fs.readdirSync(path.join(g.ds, "_refs/tags")), []);
    await checkThenUnmount(g, { main: OVERLAP.main, feature: OVERLAP.feature });
  });

onEach("a tag of another branch is not shown in a view, and its name is taken", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await ask(engine, g.ds, "main", "tag", { name: "v1", version: 4 });
  const before = snapshot(g.ds),
    feature = g.m.table("feature");
  assert.deepEqual(await ask(engine, feature, "main", "tags", {}), {});
  await assert.rejects(ask(engine, feature, "main", "tag", { name: "v1", version: 4 }), /exist/i);
  await assert.rejects(ask(engine, feature, "main", "untag", { name: "v1" }));
  assert.deepEqual(difference(before, snapshot(g.ds)), []);
  await g.m.unmount();
});

onEach("a tagged version is cleaned up no more than on the storage", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    feature = g.m.table("feature"),
    refusal = (promise) => promise.then(assert.fail, (e) => e.message.replace(/.*Cleanup error/, "Cleanup error"));
  await ask(engine, feature, "main", "tag", { name: "v1", version: 4 });
  const count = await ask(engine, feature, "main", "countAt", { tag: "v1" });
  const said = await refusal(ask(engine, feature, "main", "clean", {}));
  assert.match(said, /tagged version/);
  assert.equal(await refusal(ask(engine, g.ds, "feature", "clean", {})), said);
  for (const e of ENGINES) assert.equal(await ask(e, feature, "main", "countAt", { tag: "v1" }), count);
  await ask(engine, feature, "main", "untag", { name: "v1" });
  await ask(engine, feature, "main", "clean", {});
  await checkThenUnmount(g, { feature: OVERLAP.feature });
});

test("_refs of a view: not listed, nothing but tags in it, no branches, nothing half written", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12"),
    at = (...p) => g.m.tree("feature", "_refs", ...p);
  assert.ok(!fs.readdirSync(g.m.tree("feature")).includes("_refs"));
  assert.deepEqual(fs.readdirSync(at()), ["tags"]);
  const before = snapshot(g.ds);
  assert.equal(errnoOf(() => fs.mkdirSync(at("branches"))), "EPERM");
  assert.equal(errnoOf(() => fs.writeFileSync(at("tags", "v1.json"), "{}")), "EPERM", "only a link or a rename makes a tag");
  assert.equal(errnoOf(() => fs.mkdirSync(at("tags", "x"))), "EPERM");
  fs.mkdirSync(path.join(g.ds, "_refs/tags"), { recursive: true });
  for (const [content, code] of [["{", "EIO"], ['{"version":99,"manifestSize":1}', "ENOENT"], ['{"branch":"x","version":4,"manifestSize":1}', "ENOTSUP"]]) {
    fs.writeFileSync(at("tags", ".tmp1"), content);
    assert.equal(errnoOf(() => fs.renameSync(at("tags", ".tmp1"), at("tags", "v1.json"))), code);
    assert.equal(errnoOf(() => fs.linkSync(at("tags", ".tmp1"), at("tags", "v1.json"))), code);
    fs.unlinkSync(at("tags", ".tmp1"));
  }
  assert.equal(errnoOf(() => fs.readFileSync(g.m.tree("feature", ".versions", "4", "_refs/tags/v1.json"))), "ENOENT");
  fs.rmdirSync(path.join(g.ds, "_refs/tags"));
  assert.deepEqual(difference(before, snapshot(g.ds)), []);
  await g.m.unmount();
});
