// SPDX-License-Identifier: Apache-2.0
// How many instructions a merge and a flattened view take, counted by callgrind on inputs that never change: the same on a
// busy machine as on an idle one. They grow with the number of fragments, and no faster; and they do not creep up.
import assert from "node:assert/strict";
import { test } from "node:test";
import os from "node:os";
import path from "node:path";
import fs from "node:fs";
import { must, run } from "../harness/proc.mjs";
import { BUILD, needs, PROJECT } from "../harness/workspace.mjs";

// Instructions a fragment, of gcc 12 with -O2: what is shown below 10 % more passes. Lower them when it has become less.
const A_FRAGMENT = {
  lfs_merge3: 2703,
  lfs_flatten_manifest: 309,
  lfs_manifest_decode_like: 3012, // three versions
  lfs_manifest_encode: 1900, // of all three
};
const SLACK = 1.1,
  COMPILER = "12",
  FRAGMENTS = 2000;

// Map of function -> instructions, with all that it calls. `kind`: what work.c is told beside the number.
async function count(fragments, kind = []) {
  const out = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "lancefs-cost-")), "callgrind");
  try {
    const work = path.join(BUILD, "tests/work");
    const r = await must(run("valgrind", ["--tool=callgrind", `--callgrind-out-file=${out}`, work, String(fragments), ...kind]));
    const merged = kind.length ? fragments : fragments + 2;
    assert.equal(r.stdout, `merged, ${merged} fragments; flattened: yes\n`);
    const told = (await must(run("callgrind_annotate", ["--inclusive=yes", "--auto=no", "--threshold=100", out]))).stdout;
    return new Map(
      Object.keys(A_FRAGMENT).map((name) => {
        const line = told.split("\n").find((l) => new RegExp(`:${name} \\[`).test(l));
        assert.ok(line, `${name} is in callgrind's list`);
        return [name, Number(line.trim().split(" ")[0].replaceAll(",", ""))];
      }),
    );
  } finally {
    fs.rmSync(path.dirname(out), { recursive: true });
  }
}

test("instructions of merging, flattening, decoding and encoding", async (t) => {
  if (!(await needs(t, "valgrind"))) return;
  await must(run("make", ["-s", "-C", PROJECT, "build/tests/work"], { limitMs: 600_000 }));
  const one = await count(FRAGMENTS),
    two = await count(2 * FRAGMENTS);
  for (const [name, n] of one) {
    const ratio = two.get(name) / n;
    assert.ok(ratio < 2.1, `${name}: ${ratio.toFixed(2)} times as many instructions for twice as many fragments`);
  }
  const contended = [await count(FRAGMENTS, ["contended"]), await count(2 * FRAGMENTS, ["contended"])].map((m) => m.get("lfs_merge3"));
  const growth = contended[1] / contended[0];
  assert.ok(growth < 2.1, `${growth.toFixed(2)} times as many where both sides deleted in every fragment`);
  const compiler = (await run("gcc", ["-dumpversion"])).stdout.trim().split(".")[0];
  if (compiler !== COMPILER || process.env.CFLAGS || process.env.CC) {
    t.diagnostic(`the numbers are those of gcc ${COMPILER} with -O2: only their growth was looked at`);
    return;
  }
  for (const [name, n] of one) {
    const each = n / FRAGMENTS;
    t.diagnostic(`${name}: ${each.toFixed(0)} instructions a fragment`);
    assert.ok(each <= A_FRAGMENT[name] * SLACK, `${name}: ${each.toFixed(0)} a fragment, ${A_FRAGMENT[name]} were enough`);
  }
});
