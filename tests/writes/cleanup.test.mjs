// SPDX-License-Identifier: Apache-2.0
// Clean-up by stock Lance through the mount, and unlink(2) by hand: what goes on the storage goes, and what another branch,
// a tag or the newest version needs stays.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { load, versions } from "../interop/manifest.mjs";
import { OVERLAP, rows } from "../harness/rows.mjs";
import { errnoOf } from "../harness/control.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkTip, merges, mounted, onEach } from "../harness/tip.mjs";
import { mount } from "../harness/mount.mjs";
import { ENGINES, generate, workspace } from "../harness/workspace.mjs";

const files = (dir) =>
  fs
    .readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile() && e.name !== "latest_version_hint.json")
    .map((e) => path.relative(dir, path.join(e.parentPath ?? e.path, e.name)))
    .sort();
const known = (dir, before) => files(dir).filter((f) => before.has(f));
const plain = (r) => r.rows.map(([id, v, n]) => ({ id, v, n }));

const CHAIN = ["main", "feature", "exp/sub/deep"];
for (const branch of CHAIN)
  onEach(`chain: a clean-up of ${branch} through the mount removes what it removes on the storage`, async (t, engine) => {
    const w = workspace(t),
      g = { w, ...(await generate(w, "chain", engine)) },
      before = new Set(files(g.ds));
    const all = {};
    for (const b of CHAIN) all[b] = plain(await stock[engine].read(g.ds, b));
    await stock[engine].op(g.ds, branch, "clean", {});
    const left = known(g.ds, before);
    assert.ok(left.length < before.size, "a clean-up on the storage removes something");
    await g.reset();
    g.m = await mount(w, g.ds);
    await stock[engine].op(g.m.table(branch), "main", "clean", {});
    // stock takes the transactions of versions that it keeps for a branch; here they stay with their versions
    const kept = new Set(versions(g.storage(branch)).map((v) => `/${load(g.storage(branch), v).transactionFile}`)),
      isKept = (f) => kept.has(f.slice(f.lastIndexOf("/")));
    assert.deepEqual(known(g.ds, before).filter((f) => left.includes(f) || !isKept(f)), left);
    for (const b of CHAIN) await checkTip(g, b, all[b]);
    await stock[engine].op(g.m.table(branch), "main", "add", { rows: rows(900, 2, "w") });
    await checkTip(g, branch, [...all[branch], ...rows(900, 2, "w")]);
    await g.m.unmount();
  });

onEach("merged files survive clean-up of the source through the mount, and the next merge goes on", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await merges(g, "main", "feature");
  await stock[engine].op(g.m.table("feature"), "main", "clean", {});
  await stock[engine].op(g.m.table("main"), "main", "clean", {});
  await checkTip(g, "main", OVERLAP.union);
  await stock[engine].op(g.m.table("feature"), "main", "add", { rows: rows(800, 1, "f") });
  await merges(g, "main", "feature");
  await checkTip(g, "main", [...OVERLAP.union, ...rows(800, 1, "f")]);
  await checkTip(g, "feature", [...OVERLAP.feature, ...rows(800, 1, "f")]);
  await g.m.unmount();
});

onEach("an index that was replaced goes with its directory; the new one serves", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    op = (name, args) => stock[engine].op(g.m.table("feature"), "main", name, args);
  await op("index", { column: "id" });
  const [old] = load(g.storage("feature")).indices.map((i) => i.uuid.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"));
  assert.ok(fs.existsSync(path.join(g.storage("feature"), "_indices", old)));
  await op("index", { column: "id" });
  await op("clean", {});
  const left = path.join(g.storage("feature"), "_indices", old);
  assert.deepEqual(fs.existsSync(left) ? fs.readdirSync(left) : [], [], "the old index's files");
  await checkTip(g, "feature", OVERLAP.feature);
  await g.m.unmount();
});

onEach("unlink: what the newest version, a tag or another storage has is EPERM; an older version's own file goes", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    at = (...p) => g.m.tree("feature", ...p),
    own = g.storage("feature"),
    add = (from) => stock[engine].op(g.ds, "feature", "add", { rows: rows(from, 2, "f") }),
    newFile = async (fn) => {
      const had = new Set(fs.readdirSync(path.join(own, "data")));
      await fn();
      return fs.readdirSync(path.join(own, "data")).find((f) => !had.has(f));
    };
  const first = fs.readdirSync(path.join(own, "data"))[0],
    tagged = await newFile(() => add(700));
  await stock[engine].op(g.ds, "feature", "tag", { name: "keep", version: versions(own).at(-1) });
  const kept = versions(own).at(-1),
    older = await newFile(() => stock[engine].op(g.ds, "feature", "overwrite", { rows: rows(0, 2, "o") })),
    newest = await newFile(() => stock[engine].op(g.ds, "feature", "overwrite", { rows: rows(0, 3, "n") }));
  const gone = load(own, versions(own).at(-2));
  assert.equal(gone.fragments[0].files[0].path, older);

  assert.equal(errnoOf(() => fs.unlinkSync(at("data", newest))), "EPERM", "the newest version's");
  assert.equal(errnoOf(() => fs.unlinkSync(at("data", first))), "EPERM", "a tag's version has it too");
  assert.equal(errnoOf(() => fs.unlinkSync(at("data", tagged))), "EPERM", "a tag's");
  assert.equal(errnoOf(() => fs.unlinkSync(at("_versions", load(own).name))), "EPERM");
  assert.equal(errnoOf(() => fs.unlinkSync(at("_versions", load(own, kept).name))), "EPERM");
  const foreign = fs.readdirSync(path.join(g.ds, "data"))[0];
  assert.equal(errnoOf(() => fs.unlinkSync(at("data", foreign))), "EPERM", "main's, through feature");
  assert.equal(errnoOf(() => fs.unlinkSync(at("_versions", "latest_version_hint.json"))), "EPERM");
  assert.equal(errnoOf(() => fs.unlinkSync(at("data"))), "EISDIR");

  for (const f of [`data/${older}`, `_versions/${gone.name}`])
    assert.equal(errnoOf(() => fs.unlinkSync(at(f))), "EPERM", "who has read no manifest, as rm -r, cleans up nothing");
  fs.readFileSync(at("_versions", load(own).name));
  fs.unlinkSync(at("data", older));
  fs.unlinkSync(at("_transactions", gone.transactionFile));
  fs.unlinkSync(at("_versions", gone.name));
  for (const f of [`data/${older}`, `_versions/${gone.name}`, `_transactions/${gone.transactionFile}`]) {
    assert.ok(!fs.existsSync(path.join(own, f)), f);
    assert.ok(!fs.existsSync(at(f)), `${f} through the mount`);
  }
  await checkTip(g, "feature", rows(0, 3, "n"));
  await checkTip(g, "main", OVERLAP.main);
  await stock[engine].op(g.ds, "feature", "restore", { version: kept });
  await checkStorage(g, "feature", [...OVERLAP.feature, ...rows(700, 2, "f")]);
  await g.m.unmount();
});

onEach("what another branch stands on stays, though its unlink is no error; who holds it cannot be told: nothing goes", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine);
  await stock[engine].op(g.m.table("main"), "main", "overwrite", { rows: rows(0, 5, "o") });
  const fork = load(g.ds, 3), // where feature left main
    file = fork.fragments[0].files[0].path,
    refs = path.join(g.ds, "_refs/branches");
  fs.readFileSync(g.m.tree("main", "_versions", load(g.ds).name));
  fs.unlinkSync(g.m.tree("main", "data", file));
  fs.unlinkSync(g.m.tree("main", "_versions", fork.name));
  assert.ok(fs.existsSync(path.join(g.ds, "data", file)) && fs.existsSync(fork.file));
  await checkTip(g, "feature", OVERLAP.feature);
  await checkTip(g, "main", rows(0, 5, "o"));
  fs.writeFileSync(path.join(refs, "broken.json"), "{");
  assert.equal(errnoOf(() => fs.unlinkSync(g.m.tree("main", "data", file))), "EIO");
  assert.equal(errnoOf(() => fs.unlinkSync(g.m.tree("main", "_versions", load(g.ds, 1).name))), "EIO");
  fs.unlinkSync(path.join(refs, "broken.json"));
  fs.unlinkSync(g.m.tree("main", "_versions", load(g.ds, 1).name));
  assert.ok(!versions(g.ds).includes(1));
  await g.m.unmount();
});

onEach("clean-ups through the mount beside writers on the mount and on the storage: what was told to be written is there", async (t, engine) => {
  const g = await mounted(t, "overlap_deletes", engine),
    other = ENGINES.find((e) => e !== engine),
    written = [],
    unsure = new Set();
  const write = async (i) => {
    const where = i < 2 ? [g.m.table("feature"), "main"] : [g.ds, "feature"];
    for (let k = 0; k < 4; k++) {
      const lot = rows(3000 + (i * 4 + k) * 10, 3, "w");
      await stock[i % 2 ? engine : other].op(...where, "add", { rows: lot }).then(
        () => written.push(...lot),
        (e) => (raced(e), lot.forEach((r) => unsure.add(r.id))),
      );
    }
  };
  const tidy = async () => {
    for (let k = 0; k < 4; k++) await stock[engine].op(g.m.table("feature"), "main", "cleanVerified", {}).catch(raced);
  };
  await Promise.all([0, 1, 2, 3].map(write).concat(tidy()));
  const found = plain(await stock[engine].read(g.ds, "feature")).filter((r) => !unsure.has(r.id));
  const byId = (a, b) => a.id - b.id;
  assert.ok(written.length > 0);
  assert.deepEqual(found.sort(byId), [...OVERLAP.feature, ...written].sort(byId));
  await checkTip(g, "main", OVERLAP.main);
  await g.m.unmount();
});
// A compaction that lost its race, or a version that went while it was read: on the storage it is the same.
function raced(e) {
  assert.match(e.message, /conflict|Not found|retr/i);
}
