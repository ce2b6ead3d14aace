// SPDX-License-Identifier: Apache-2.0
// Damaged and malicious data sets (tests/interop/hostile.mjs): what still works, and how the rest is refused. Whatever
// feature is, main reads as ever, no byte of a file outside the data set is shown, every command ends, the daemon lives
// and stays small, and a merge gives exactly the right rows or changes nothing (C50 C54 C59 C75 C76).
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { ctl } from "../harness/control.mjs";
import { daemonOf, mount } from "../harness/mount.mjs";
import { sh } from "../harness/proc.mjs";
import { expectRows, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkTip, control, merges, stops } from "../harness/tip.mjs";
import { ENGINES, generate, place, workspace } from "../harness/workspace.mjs";

const TEN = rows(0, 10),
  FEATURE = [...without(TEN, 4), ...rows(100, 2, "f")],
  MERGED = [...without(TEN, 0, 4), ...rows(100, 2, "f")]; // once main deleted row 0

// look: what a reader of feature gets: "rows", "error", or "gone" where nothing is listed.
// merge: what `feature > main/.merge` gives: "merged", or these errnos.
const good = { look: "rows", merge: "merged" };
const damaged = { look: "error", merge: ["EIO"] };
const unreadable = { look: "error", merge: "merged" }; // its own rows are well, the way to main's files is not
const noFile = { look: "error", merge: ["EIO", "ENOENT"] };
const gone = { look: "gone", merge: ["EIO"] };
const EXPECTED = {
  good,
  // the manifest as a file
  empty: damaged,
  half: damaged,
  footer_only: damaged,
  bad_magic: damaged,
  offset_past_end: damaged,
  offset_huge: damaged,
  length_huge: damaged,
  length_short: damaged,
  varint_11: damaged,
  wire_type_7: damaged,
  field_past_end: damaged,
  // names of data files that lead elsewhere
  path_up: noFile,
  path_abs: noFile,
  path_dot: noFile,
  path_dotdot: noFile,
  path_none: noFile,
  path_nul: damaged,
  path_newline: noFile,
  path_slash: noFile,
  path_long: { look: "error", merge: ["EIO", "ENAMETOOLONG"] },
  path_latin1: noFile,
  // base paths that lead elsewhere
  base_etc: unreadable,
  base_up: unreadable,
  base_relative: unreadable,
  base_empty: unreadable,
  base_s3: unreadable,
  base_file: good,
  base_encoded: unreadable,
  base_prefix: unreadable,
  base_mount: unreadable,
  base_dev: unreadable,
  base_twice: unreadable,
  base_missing: noFile,
  base_100k: { look: "error", merge: ["EFBIG"] },
  // what the manifest claims
  frag_twice: { look: "any", merge: ["EIO"] }, // stock reads the fragment twice, and so does the mount
  frag_id_huge: good, // a merge numbers what it brings anew
  rows_huge: { look: "error", merge: ["EIO"] },
  size_lie: { look: "error", merge: ["EIO"] },
  deleted_more_than_rows: { look: "any", merge: ["EIO"] },
  version_lie: damaged,
  branch_lie: damaged,
  reader_flag: { look: "error", merge: ["EOPNOTSUPP"] },
  writer_flag: { look: "rows", merge: ["EOPNOTSUPP"] },
  unknown_field: good,
  // refs
  ref_name_up: good,
  ref_name_nul: good,
  ref_name_bad: good,
  ref_name_dot: good,
  ref_name_slash: good,
  ref_name_main: good,
  ref_name_none: good,
  ref_is_dir: good,
  ref_symlink: good,
  ref_empty: gone,
  ref_half: gone,
  ref_deep: gone,
  ref_number: gone,
  ref_cycle: good,
  ref_parent_gone: good,
  ref_parent_future: good,
  // hints, and names that are no version's
  hint_old: good,
  hint_future: good,
  hint_junk: good,
  hint_huge: good,
  hint_empty: good,
  version_name_detached: good,
  version_name_zero: good,
  version_name_overflow: good,
  version_name_word: good,
  version_name_tmp: good,
  version_name_short: damaged, // two naming schemes in one directory
  version_symlink: { look: "error", merge: ["ELOOP"] },
  version_is_dir: { look: "error", merge: ["EISDIR"] },
  // files
  data_symlink: { look: "error", merge: ["ELOOP", "EIO"] },
  dir_symlink: { look: "error", merge: ["ELOOP", "EIO"] },
  deletion_gone: damaged,
  deletion_half: damaged,
  deletion_junk: damaged,
};

const MEMORY_KB = 64 << 10,
  sanitized = process.env.LANCEFS?.includes("asan");
const peak = (mnt) => Number(/^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${daemonOf(mnt)}/status`, "utf8"))[1]);

// Everything is listed and read, as a backup would do it. What cannot be read is an error of cat; it is no secret.
async function walk(g) {
  const r = await sh('find "$1" -ls; find "$1" -type f -exec cat {} +', [g.m.mnt], { limitMs: 20_000 });
  assert.equal(r.timedOut, false, "a walk over the mount ends");
  assert.doesNotMatch(r.stdout, /SECRET|root:x:0/, "a file outside the data set is shown");
}

async function look(g, engine, expected) {
  const shown = (await sh('ls "$1/tree"', [g.m.mnt])).stdout.split("\n");
  assert.equal(shown.includes("feature"), expected !== "gone", `tree/ shows ${shown}`);
  if (expected === "gone" || expected === "any") return;
  const read = await stock[engine].read(g.m.tree("feature"), "main").catch((e) => e);
  if (expected === "rows") expectRows(read, FEATURE, "feature through the mount");
  else assert.ok(read instanceof Error, `feature was read: ${JSON.stringify(read).slice(0, 200)}`);
}

async function mergeBoth(g, engine, expected) {
  await stock[engine].op(g.ds, "main", "delete", { where: "id = 0" });
  if (expected === "merged") {
    await merges(g, "main", "feature");
    await checkTip(g, "main", MERGED);
    return;
  }
  const answer = await stops(g, "main", "feature", expected, undefined, { leftovers: true });
  assert.match(answer.text, /feature/, "the answer names the branch");
  await checkTip(g, "main", without(TEN, 0));
}

for (const [i, [name, expected]] of Object.entries(EXPECTED).entries()) {
  const engine = ENGINES[i % ENGINES.length]; // half of them written by each; both read
  test(`${name}: ${expected.look}; ${expected.merge} [written by ${engine}]`, async (t) => {
    const w = workspace(t),
      at = path.join(w.dir, "here"),
      args = name === "base_mount" ? [at] : [];
    const { root } = await generate(w, "hostile", engine, { args }),
      g = { ...place(path.join(root, name, "t.lance")), root };
    g.m = await mount(w, g.ds, { at });
    await walk(g);
    await look(g, engine, expected.look);
    await checkTip(g, "main", TEN);
    await mergeBoth(g, engine, expected.merge);
    const back = await ctl(control(g, "feature"), "main"); // whatever it says: main, and the daemon, are as before
    if (["damaged", "gone"].includes(expected.look)) assert.notEqual(back.code, 0, back.answer.text);
    await walk(g);
    await checkTip(g, "main", expected.merge === "merged" ? MERGED : without(TEN, 0));
    if (!sanitized) assert.ok(peak(g.m.mnt) < MEMORY_KB, `${peak(g.m.mnt)} KiB`);
  });
}

for (const engine of ENGINES)
  test(`every data set of the generator has its line in the table [written by ${engine}]`, async (t) => {
    const w = workspace(t),
      { root } = await generate(w, "hostile", engine),
      made = fs.readdirSync(root).filter((n) => n !== "secret.lance");
    assert.deepEqual(made.sort(), Object.keys(EXPECTED).sort());
  });
