// SPDX-License-Identifier: Apache-2.0
// What must not be possible: every call that would change what is published fails with EPERM (EROFS on a read-only mount) or
// EACCES, and neither the view nor the storage changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { must, run, sh } from "../harness/proc.mjs";
import { rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, checkView, mounted } from "../harness/tip.mjs";
import { difference, probe, probePath, snapshot } from "../harness/workspace.mjs";

const REFUSED = /Read-only file system|Operation not permitted|Permission denied/;

// "$1" is a branch directory, "$2" a data file in it, "$3" a manifest in it, "$4" the mount.
const CALLS = {
  "create beside the data": '> "$1/new"',
  "create at the top": '> "$4/new"',
  "create in tree/": '> "$4/tree/new"',
  "create in tables/": '> "$4/tables/new"',
  "create a manifest": '> "$1/_versions/18446744073709551000.manifest"',
  "write to a data file": 'echo x > "$2"',
  "append to a data file": 'echo x >> "$2"',
  "overwrite a manifest": 'dd if=/dev/zero of="$3" bs=1 count=1 conv=notrunc status=none',
  "truncate a data file": 'truncate -s 0 "$2"',
  "remove a data file": 'rm -f "$2"',
  "remove a manifest": 'rm -f "$3"',
  "remove everything": 'rm -rf "$1"',
  "rename a data file": 'mv "$2" "$2.old"',
  "rename over a data file": 'mv "$3" "$2"',
  "rename a branch's folder": 'mv "$1/data" "$1/data2"',
  "make a branch inside": 'mkdir -p "$1/tree/x/_versions"',
  "make a transaction": '> "$1/_transactions/1-x.txn"',
  "copy over a data file": 'cp "$3" "$2"',
  "make a folder": 'mkdir "$1/_versions/folder"',
  "remove a folder": 'rmdir "$1/_deletions"',
  "hard link": 'ln "$2" "$1/data/two.lance"',
  "symbolic link": 'ln -s x "$1/data/link.lance"',
  "device node": 'mkfifo "$1/data/pipe"',
  "chmod a data file": 'chmod 777 "$2"',
  "chmod a folder": 'chmod 777 "$1/data"',
  "chown a data file": 'chown 12345 "$2"',
  "touch a data file": 'touch -d 2001-01-01 "$2"',
  "a symlink in tables": 'rm "$4/tables/feature.lance"',
  "the control file's name": 'mv "$1/.merge" "$1/.merge2"',
};

for (const [name, script] of Object.entries(CALLS)) {
  test(`${name}: refused, nothing changes`, async (t) => {
    const g = await mounted(t, "overlap_deletes", "lance12"),
      before = snapshot(g.root);
    const dir = g.m.tree("feature"),
      first = async (sub) => path.join(dir, sub, (await must(run("ls", [path.join(dir, sub)]))).stdout.split("\n")[0]);
    const r = await sh(script, [dir, await first("data"), await first("_versions"), g.m.mnt], {
      env: { LC_ALL: "C" },
    });
    assert.notEqual(r.code, 0, "it came through");
    assert.match(r.stderr, REFUSED);
    assert.deepEqual(difference(before, snapshot(g.root)), []);
  });
}

test("truncate(2) and opening for writing are refused for every kind of file of a view", async (t) => {
  const g = await mounted(t, "chain", "lance10"),
    before = snapshot(g.root);
  const files = (await must(run("find", [g.m.tree("."), "-type", "f", "!", "-name", ".*"]))).stdout
    .split("\n")
    .filter(Boolean);
  assert.ok(files.length > 20);
  const exe = await probePath();
  const bad = await sh(
    'exe=$1; shift; for f; do "$exe" truncate "$f" 0 2>/dev/null && echo "truncated $f"; "$exe" open "$f" w 2>/dev/null && echo "opened $f"; done; true',
    [exe, ...files],
  );
  assert.equal(bad.stdout, "");
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("after refused calls the views still read", async (t) => {
  const g = await mounted(t, "chain", "lance12");
  await sh('rm -rf "$1"; mv "$1/data" "$1/data.x"; : > "$1/data/x"', [g.m.tree("feature")]);
  await checkView(g, "feature", [...rows(0, 10).filter((r) => r.id !== 1), ...rows(100, 2, "f")]);
});

test("-o ro: a stock writer on a view gets an error and changes nothing", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12", { options: ["ro"] }),
    before = snapshot(g.root);
  for (const e of ["lance10", "lance12"]) {
    for (const [op, args] of [
      ["add", { rows: rows(1, 1) }],
      ["delete", { where: "id = 1" }],
      ["update", { where: "id = 1", values: { v: "x" } }],
      ["index", { column: "id" }],
    ])
      await assert.rejects(
        stock[e].op(g.m.tree("feature"), "main", op, args),
        /Read-only/i,
        `${e} ${op}`,
      );
  }
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("mkdir of a folder that is there says so, as a reader's mkdir -p needs it", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12");
  await must(
    run("mkdir", [
      "-p",
      ...["data", "_versions", "_transactions", "_deletions", "_indices"].map((d) => g.m.tree("main", d)),
    ]),
  );
});

test("-o ro: the kernel knows; reading works, refs and versions stay", async (t) => {
  const g = await mounted(t, "overlap_deletes", "lance12", { options: ["ro"] });
  const line = fs
    .readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((l) => l.includes(g.m.mnt));
  assert.match(line.split(" ")[5], /(^|,)ro(,|$)/);
  assert.match((await probe("open", g.m.tree("feature", ".merge"), "w")).stderr, /EROFS/);
  await checkTip(g, "feature", [
    ...rows(0, 300).filter((r) => !(r.id >= 10 && r.id <= 19) && !(r.id >= 150 && r.id <= 159)),
    ...rows(1000, 3, "f"),
  ]);
});
