// SPDX-License-Identifier: Apache-2.0
// Tags: ln -s, rm and mv in tags/, .tag; and what tags/<tag>/ and .versions/<n>/ show.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load, tip } from "../interop/manifest.mjs";
import { json, listed, refused, settled, tagFile, works } from "../harness/names.mjs";
import { must, run } from "../harness/proc.mjs";
import { expectRows, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { mounted, onEach } from "../harness/tip.mjs";
import { fails } from "../harness/verbs.mjs";
import { ENGINES } from "../harness/workspace.mjs";

// chain: feature's versions
const FIRST = rows(0, 10),
  ADDED = [...FIRST, ...rows(100, 2, "f")],
  FEATURE = without(ADDED, 1);

async function shows(g, at, expected) {
  for (const e of ENGINES) expectRows(await stock[e].read(path.join(g.m.mnt, at)), expected, `${at}, read by ${e}`);
}
const NANOSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/;

onEach("made, moved, renamed, deleted: as stock makes them, and both engines list them", async (t, engine) => {
  const g = await mounted(t, "chain", engine),
    n = tip(g.storage("feature"));
  await stock[engine].op(g.ds, "feature", "tag", { name: "stock", version: n });
  await works(g, "echo v1 > tree/feature/.tag; echo 'v2 from=2' > tree/main/.tag");
  await works(g, `ln -s ../tree/feature/.versions/${n - 1} tags/v3 && ln -s ../tree/main tags/v4`);
  await works(g, 'cd tags && ln -s "$MNT/tree/exp/sub/.versions/$1/" v5', String(tip(g.storage("exp/sub"))));
  const all = { stock: n, v1: n, v2: 2, v3: n - 1, v4: tip(g.ds), v5: tip(g.storage("exp/sub")) };
  await listed(g, undefined, all);
  const [ours, theirs] = ["v1", "stock"].map((name) => json(tagFile(g, name)));
  assert.deepEqual(Object.keys(ours), Object.keys(theirs));
  assert.deepEqual({ ...ours, createdAt: 0, updatedAt: 0 }, { ...theirs, createdAt: 0, updatedAt: 0 });
  assert.match(ours.createdAt, NANOSECONDS);
  assert.equal(ours.createdAt, ours.updatedAt);
  assert.ok(Math.abs(Date.parse(ours.createdAt) - Date.now()) < 600_000, "now, in UTC");
  assert.equal(fs.readFileSync(tagFile(g, "v1"), "utf8"), JSON.stringify(ours, null, 2));
  assert.equal(json(tagFile(g, "v2")).branch, null, "main");
  assert.deepEqual(
    (await works(g, "ls -l tags")).match(/\S+ -> \S+/g),
    Object.entries({ ...all }).map(
      ([name, v]) =>
        `${name} -> ../tree/${{ v2: "main", v4: "main", v5: "exp/sub" }[name] ?? "feature"}/.versions/${v}`,
    ),
  );
  await refused(g, "EEXIST", "echo v1 > tree/main/.tag");
  await works(g, "echo 'v1 from=3 move' > tree/main/.tag");
  const moved = json(tagFile(g, "v1"));
  assert.deepEqual([moved.branch, moved.version, moved.createdAt], [null, 3, ours.createdAt]);
  assert.ok(moved.updatedAt > ours.updatedAt && NANOSECONDS.test(moved.updatedAt));
  assert.equal(moved.manifestSize, fs.statSync(load(g.ds, 3).file).size);
  await works(g, "mv tags/v2 tags/two && rm tags/v3 tags/v4");
  await listed(g, undefined, { stock: n, v1: 3, two: 2, v5: all.v5 });
  await refused(g, "EEXIST", "mv -T tags/two tags/v1");
  settled(g);
});

onEach("tags/<tag>/ and .versions/<n>/: the data set at that version, whatever is committed later", async (t, engine) => {
  const g = await mounted(t, "chain", engine),
    n = tip(g.storage("feature"));
  await works(g, `echo t > tree/feature/.tag; ln -s ../tree/feature/.versions/${n - 1} tags/before`);
  const check = async () => {
    await shows(g, "tags/t/", FEATURE);
    await shows(g, "tags/before/", ADDED);
    await shows(g, `tree/feature/.versions/${n - 2}`, FIRST);
    await shows(g, "tree/main/.versions/1", rows(0, 5));
  };
  await check();
  await stock[engine].op(g.ds, "feature", "add", { rows: rows(700, 3) });
  await stock[engine].op(g.ds, "feature", "delete", { where: "id < 5" });
  await check();
  assert.equal((await works(g, "ls tree/feature/.versions")).trim().split("\n").length, 5);
  assert.ok(!(await works(g, "ls -A tree/feature")).includes(".versions"), "by name, not listed");
  assert.equal((await works(g, "ls tags/t/_versions")).trim(), load(g.storage("feature"), n).name);
  assert.equal((await works(g, "ls -A tags/t/")), "_deletions\n_indices\n_transactions\n_versions\ndata\n");
  for (const script of ["echo main > tags/t/.merge", "mkdir tags/t/x", "rm tags/t/_versions/*", "mkdir tree/feature/.versions/99"])
    await refused(g, ["EPERM", "EROFS", "ENOENT"], script);
  await works(g, "! ls tree/feature/.versions/99 tree/feature/.versions/0 tree/feature/.versions/07 2>/dev/null");
  const copy = path.join(g.w.dir, "copy.lance"); /* an independent data set */
  await must(run("cp", ["-r", `${g.m.mnt}/tags/before/`, copy]));
  await g.m.unmount();
  for (const e of ENGINES) expectRows(await stock[e].read(copy), ADDED, `the copy, read by ${e}`);
  await stock[engine].op(copy, "main", "add", { rows: rows(900, 1) });
  expectRows(await stock[engine].read(copy), [...ADDED, ...rows(900, 1)], "the copy goes on");
});

onEach("stock's clean-up keeps a tagged version; a tag whose version is gone leads nowhere", async (t, engine) => {
  const g = await mounted(t, "tags", engine);
  await shows(g, "tags/v1/", rows(0, 10));
  await shows(g, "tags/feature/", rows(0, 11)); /* the tag; the branch of that name is another thing */
  await shows(g, "tags/feat-v/", [...rows(0, 11), ...rows(100, 2, "f")]);
  await works(g, "mkdir tree/b && echo tb > tree/b/.tag");
  await stock.lance10.op(g.ds, "main", "drop", { name: "b" }); /* lance10 does, tag or not */
  await works(g, "! ls tags/tb/ 2>/dev/null; readlink tags/tb; ls tags/v1/ > /dev/null");
  await works(g, "rm tags/tb");
  await listed(g, undefined, { v1: 1, "feat-v": 4, feature: 2 });
});

test("names, versions and targets that are off: nothing is made", async (t) => {
  const g = await mounted(t, "chain", "lance12");
  for (const line of ["bad/name", ".x", "x.", "a..b", "x.lock", '"a b"', "x move more", "x y", "", "x dry-run"].filter(Boolean))
    await fails(g, ".tag", "main", line, "EINVAL");
  for (const line of ["x from=99", "x from=0", "x from=99 move"]) await fails(g, ".tag", "main", line, "ENOENT");
  await refused(g, "ENOENT", "ln -s ../tree/main/.versions/99 tags/x");
  for (const target of ["../tree/none/.versions/1", "../tree/main/.versions/"]) await refused(g, "ENOENT", 'ln -s "$1" tags/x', [target]);
  for (const target of ["x", "/etc/passwd", "../tree", "../tree/main/.versions/x", "../tree/main/.versions/01"])
    await refused(g, "EINVAL", 'ln -s "$1" tags/x', [target]);
  await refused(g, "EINVAL", "ln -s ../tree/main 'tags/a b'");
  await refused(g, ["EPERM", "EROFS"], "ln -s main tree/x");
  await refused(g, ["EPERM", "EROFS"], "ln tree/main/.merge tags/x");
  await refused(g, "ENOENT", "rm tags/none");
  await works(g, "ln -s ../tree/main tags/x");
  await refused(g, "EINVAL", "mv tags/x 'tags/a b'");
});
