// SPDX-License-Identifier: Apache-2.0
// Tags as refs: wherever a command takes a version, tags/NAME is one.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { changed, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, pick, pickFails, revert, revertFails, scratch } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);

// Two fragments on main (version 2); f: 3 appends 100, 4 deletes 5, 5 updates 12. Tags by stock.
async function tagged(t, engine) {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 1, "f") });
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "update", { where: "id = 12", values: { v: "up" } });
  await g.op("f", "tag", { name: "three", version: 3 });
  await g.op("f", "tag", { name: "v4.0_x-y", version: 4 });
  await g.op("main", "tag", { name: "begin", version: 1 });
  return g;
}

onEach("a tag is merged, picked, a range and a base; on its own branch it can be reverted", async (t, engine) => {
  const g = await tagged(t, engine);
  const a = await merge(g, "main", "tags/three", "fast-forward");
  assert.equal(a.source, "f@3");
  await checkTip(g, "main", [...TWENTY, ...rows(100, 1, "f")]);
  await merge(g, "main", "tags/begin", "up-to-date");
  await pick(g, "main", "tags/v4.0_x-y");
  await checkTip(g, "main", [...without(TWENTY, 5), ...rows(100, 1, "f")]);
  await merge(g, "main", "tags/v4.0_x-y/ base=tags/begin", ["merged", "empty-merge"]);
  await revertFails(g, "main", "tags/three", "EINVAL");
  await revert(g, "f", "tags/v4.0_x-y");
  await checkTip(g, "f", [...changed(TWENTY, 12, { v: "up" }), ...rows(100, 1, "f")]);
  await g.fork("h");
  await pick(g, "h", "tags/three..tags/v4.0_x-y squash", ["merged", "up-to-date"]);
  await pickFails(g, "h", "tags/begin..tags/three squash", "EINVAL");
  await checkThenUnmount(g, { h: [...without(TWENTY, 5), ...rows(100, 1, "f")] });
});

onEach("tags that lead nowhere, a branch that is named like one, and names that stock encodes", async (t, engine) => {
  const g = await tagged(t, engine),
    refs = path.join(g.ds, "_refs/tags"),
    ref = JSON.parse(fs.readFileSync(path.join(refs, "three.json"), "utf8"));
  const write = (name, changes) => fs.writeFileSync(path.join(refs, `${name}.json`), JSON.stringify({ ...ref, ...changes }));
  write("gone", { branch: "nosuch" });
  write("late", { version: 99 });
  write("%C3%A9t%C3%A9", { version: 3 });
  fs.writeFileSync(path.join(refs, "broken.json"), "{");
  assert.match((await mergeFails(g, "main", "tags/gone", "ENOENT", "error")).error, /nosuch/);
  await mergeFails(g, "main", "tags/late", "ENOENT", "error");
  await mergeFails(g, "main", "tags/broken", "EIO", "error");
  await mergeFails(g, "main", "tags/Three", "ENOENT", "error");
  await g.op("main", "fork", { name: "tags/b", from: "main" });
  await g.op("tags/b", "delete", { where: "id = 1" });
  assert.match((await mergeFails(g, "main", "tags/b", "ENOENT", "error")).error, /tree\/tags\/b/);
  await merge(g, "main", "tree/tags/b", "fast-forward");
  await merge(g, "main", "tags/été");
  await checkThenUnmount(g, { main: [...without(TWENTY, 1), ...rows(100, 1, "f")] });
});
