// SPDX-License-Identifier: Apache-2.0
// The Debian packaging, checked without building it (make deb does that): its version is the program's, it needs what
// bootstrap.sh installs, and each file that make install brings goes into exactly one package.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { must, run, sh } from "../harness/proc.mjs";
import { PROJECT, workspace } from "../harness/workspace.mjs";

const debian = (...p) => fs.readFileSync(path.join(PROJECT, "scripts/debian", ...p), "utf8");

test("the packages: version, dependencies, and every installed file in one of them", async (t) => {
  const w = workspace(t),
    version = /LFS_VERSION "(.*)"/.exec(fs.readFileSync(path.join(PROJECT, "core/version.h"), "utf8"))[1];
  assert.match(debian("changelog"), new RegExp(`^lancefs \\(${version.replaceAll(".", "\\.")}-\\d+\\) `));
  const needed = fs.readFileSync(path.join(PROJECT, "scripts/bootstrap.sh"), "utf8").split("needed_to_build() {")[1].split("\n}")[0],
    wanted = [...needed.matchAll(/need_package (lib(?!c6)\S+-dev|uuid-dev) /g)].map((m) => m[1]);
  assert.ok(wanted.length >= 5, wanted.join(" "));
  const [source, binary, library] = debian("control").split(/\n\n(?=Package:)/);
  for (const p of wanted) assert.ok(source.includes(` ${p}`), `${p} in Build-Depends`);
  for (const p of wanted.filter((x) => x !== "libfuse3-dev")) assert.ok(library.includes(` ${p}`), `${p} for who links the library`);
  assert.match(binary, /^Depends: fuse3,/m);

  await must(run("make", ["-s", "-C", PROJECT, "install", "PREFIX=/usr", "LIBDIR=/usr/lib/x86_64-linux-gnu", `DESTDIR=${w.dir}`]));
  const files = (await must(sh('cd "$1" && find usr ! -type d', [w.dir]))).stdout.trim().split("\n"),
    patterns = ["lancefs.install", "liblancefs-dev.install"].map((f) => debian(f).trim().split("\n"));
  const within = (file, pattern) => {
    const [have, want] = [file.split("/"), pattern.split("/")];
    return want.every((part, i) => part === "*" || part === have[i]);
  };
  for (const file of files) assert.equal(patterns.filter((list) => list.some((p) => within(file, p))).length, 1, file);
  for (const p of patterns.flat()) assert.ok(files.some((f) => within(f, p)), `${p} is installed`);
});
