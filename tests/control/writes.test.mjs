// SPDX-License-Identifier: Apache-2.0
// Every way in which a shell and its tools put a line into a control file. One line is one command; its result is the
// write's; what is no command does nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { tip } from "../interop/manifest.mjs";
import { answerOf, ctl, errnoIn } from "../harness/control.mjs";
import { must, run, sh } from "../harness/proc.mjs";
import { OVERLAP, without } from "../harness/rows.mjs";
import { checkTip, control, mounted } from "../harness/tip.mjs";
import { difference, probe, probePath, snapshot } from "../harness/workspace.mjs";

const ENGINE = "lance12"; // the words of a command do not depend on who wrote the data
const UNION = OVERLAP.union;
const overlap = (t) => mounted(t, "overlap_deletes", ENGINE);
const clash = (t) => mounted(t, "delete_vs_update", ENGINE);
// "$1" is the control file
const shell = (g, script, options) => sh(script, [control(g, "main"), g.w.dir], { env: { LC_ALL: "C" }, ...options });

// Scripts that merge feature into main once. "$2" is a scratch folder.
const ONE_MERGE = {
  "echo >": 'echo feature > "$1"',
  "echo >>": 'echo feature >> "$1"',
  "echo with blanks": 'echo "  feature  " > "$1"',
  "echo with a tab": 'printf "\\tfeature\\t\\n" > "$1"',
  "printf with CR LF and blanks": 'printf " feature \\r\\n" > "$1"',
  "printf without a newline": 'printf feature > "$1"',
  "echo -n": 'echo -n feature > "$1"',
  "printf in two writes": '(printf fea; printf "ture\\n") > "$1"',
  "printf with empty lines around": 'printf "\\n\\nfeature\\n\\n" > "$1"',
  "dd in one write": 'echo feature | dd of="$1" status=none',
  "dd bs=1": 'echo feature | dd of="$1" bs=1 status=none',
  "dd bs=1 conv=notrunc without a newline": 'printf feature | dd of="$1" bs=1 conv=notrunc status=none',
  tee: 'echo feature | tee "$1" > /dev/null',
  "tee -a": 'echo feature | tee -a "$1" > /dev/null',
  "cat from a file": 'echo feature > "$2/line"; cat "$2/line" > "$1"',
  cp: 'echo feature > "$2/line"; cp "$2/line" "$1"',
  "a here document": 'cat > "$1" <<EOF\nfeature\nEOF',
  "a descriptor for reading and writing": 'exec 7<>"$1" && echo feature >&7',
  dash: 'sh -c "echo feature > \\"\\$1\\"" sh "$1"',
};
for (const [name, script] of Object.entries(ONE_MERGE)) {
  test(`C22 ${name}: one merge, exit status 0`, async (t) => {
    const g = await overlap(t),
      r = await shell(g, script);
    assert.equal(r.code, 0, r.stderr);
    assert.equal(tip(g.ds), 7, "one version more, not two");
    assert.equal((await answerOf(control(g, "main"))).result, "merged");
  });
}

test("the row contents after such a merge are the merge's", async (t) => {
  const g = await overlap(t);
  await must(shell(g, 'echo feature | dd of="$1" bs=1 status=none'));
  await checkTip(g, "main", UNION);
});

// Scripts that do nothing and succeed.
const NOTHING = {
  ": >": ': > "$1"',
  "truncate -s 0": 'truncate -s 0 "$1"',
  "truncate -s 100": 'truncate -s 100 "$1"',
  touch: 'touch "$1"',
  "touch -d": 'touch -d 2001-01-01 "$1"',
  cat: 'cat "$1" > /dev/null',
  "an empty line": 'echo > "$1"',
  "blanks only": 'printf "  \\t \\n\\r\\n" > "$1"',
  "opened for appending and closed": 'exec 7>>"$1"; exec 7>&-',
  "a descriptor that is duplicated and closed": 'exec 7>"$1"; exec 8>&7; exec 7>&-; exec 8>&-',
  "test -e, -f, -r, -w": 'test -e "$1" && test -f "$1" && test -r "$1" && test -w "$1"',
};
for (const [name, script] of Object.entries(NOTHING)) {
  test(`C22 ${name}: nothing happens, exit status 0`, async (t) => {
    const g = await overlap(t),
      before = snapshot(g.root),
      r = await shell(g, script);
    assert.equal(r.code, 0, r.stderr);
    assert.deepEqual(difference(before, snapshot(g.root)), []);
  });
}

test("C22 truncation between the halves of a line does not lose the command", async (t) => {
  const g = await overlap(t);
  await must(shell(g, 'exec 7>>"$1"; printf fea >&7; truncate -s 0 "$1"; printf "ture\\n" >&7'));
  assert.equal(tip(g.ds), 7);
});

test("C22 open modes: r, r+, a work; x says that the file exists", async (t) => {
  const g = await overlap(t);
  for (const how of ["r", "rw", "a", "w"]) assert.equal((await probe("open", control(g, "main"), how)).code, 0, how);
  assert.match((await probe("open", control(g, "main"), "x")).stderr, /EEXIST/);
});

test("a control file cannot be removed, renamed, linked or replaced", async (t) => {
  const g = await overlap(t),
    file = control(g, "main");
  for (const script of ['rm -f "$1"', 'mv "$1" "$1.old"', 'mv "$2/x" "$1"', 'ln "$1" "$1.2"', 'mkdir "$1"']) {
    fs.writeFileSync(path.join(g.w.dir, "x"), "feature\n");
    const r = await shell(g, script);
    assert.notEqual(r.code, 0, script);
  }
  assert.equal((await run("test", ["-f", file])).code, 0);
  assert.equal(tip(g.ds), 6, "mv of a file onto it runs nothing");
});

test("control files are the mounting user's, mode 0600; control_mode= changes that", async (t) => {
  const g = await overlap(t),
    mode = async (m) => (await must(run("stat", ["-c", "%a %u", path.join(m.mnt, "tree/main/.merge")]))).stdout.trim();
  assert.equal(await mode(g.m), `600 ${process.getuid()}`);
  const other = await mounted(t, "overlap_deletes", ENGINE, { options: ["control_mode=0660"] });
  assert.equal(await mode(other.m), `660 ${process.getuid()}`);
});

// C03: every way to write a command that fails says so
const FAILING = {
  echo: 'echo u_u > "$1"',
  "echo under set -e": 'set -e; echo u_u > "$1"; exit 0',
  "echo &&": 'echo u_u > "$1" && exit 0; exit 1',
  "printf with a newline": 'printf "u_u\\n" > "$1"',
  dd: 'echo u_u | dd of="$1" status=none',
  "dd bs=1": 'echo u_u | dd of="$1" bs=1 status=none',
  "dd without a newline: close tells": 'printf u_u | dd of="$1" status=none',
  cp: 'echo u_u > "$2/line"; cp "$2/line" "$1"',
  "cp without a newline: close tells": 'printf u_u > "$2/line"; cp "$2/line" "$1"',
  tee: 'set -o pipefail; echo u_u | tee "$1" > /dev/null',
  cat: 'echo u_u | cat > "$1"',
  "an unknown branch": 'echo nosuch > "$1"',
};
for (const [name, script] of Object.entries(FAILING)) {
  test(`C03 ${name}: a merge that fails is an exit status and a message`, async (t) => {
    const g = await clash(t),
      before = snapshot(g.root),
      r = await shell(g, script);
    assert.notEqual(r.code, 0);
    assert.equal(errnoIn(r.stderr), name === "an unknown branch" ? "ENOENT" : "ECANCELED", r.stderr);
    assert.deepEqual(difference(before, snapshot(g.root)), []);
  });
}

test("C03 write(2) fails, not close(2), when the line ends with a newline; close(2) does when it does not", async (t) => {
  const g = await clash(t),
    file = control(g, "main"),
    exe = await probePath();
  assert.equal((await run(exe, ["raw", file], { input: "u_u\n" })).stdout, "write ECANCELED\nclose 0\n");
  assert.equal((await run(exe, ["raw", file], { input: "u_u" })).stdout, "write 0\nclose ECANCELED\n");
  assert.equal((await run(exe, ["raw", file], { input: "u_o\n" })).stdout, "write 0\nclose 0\n");
});

test("C03 exit status 0 comes only after the version is there", async (t) => {
  const g = await overlap(t);
  await must(shell(g, 'echo feature > "$1" && ls "$(dirname "$1")/_versions" > "$2/seen"'));
  assert.match(fs.readFileSync(path.join(g.w.dir, "seen"), "utf8"), /18446744073709551608\.manifest/); // version 7
  assert.equal(tip(g.ds), 7);
});

test("a repeated failing command fails again and harms nothing", async (t) => {
  const g = await clash(t),
    before = snapshot(g.root);
  for (let i = 0; i < 3; i++) assert.equal((await ctl(control(g, "main"), "u_u")).errno, "ECANCELED");
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("two lines in one write are two commands; the first that fails ends it", async (t) => {
  const g = await mounted(t, "siblings", ENGINE),
    exe = await probePath();
  const r = await run(exe, ["raw", control(g, "main")], { input: "x\ns\n" });
  assert.equal(r.stdout, "write 0\nclose 0\n");
  assert.equal(tip(g.ds), 3, "x by fast-forward, then s");
  const bad = await run(exe, ["raw", control(g, "main")], { input: "nosuch\nt\n" });
  assert.match(bad.stdout, /^write ENOENT/);
});

test("a line with a NUL is refused whole", async (t) => {
  const g = await overlap(t),
    exe = await probePath(),
    before = snapshot(g.root);
  for (const input of ["feature\0\n", "\0feature\n", "fea\0ture\n"]) {
    const r = await run(exe, ["raw", control(g, "main")], { input });
    assert.match(r.stdout, /^write E(INVAL|ILSEQ)/, JSON.stringify(input));
  }
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("a line over 64 KiB is refused whole, one just below is a command", async (t) => {
  const g = await overlap(t),
    exe = await probePath(),
    before = snapshot(g.root),
    LIMIT = 64 * 1024;
  const line = (length) => `feature${" ".repeat(length - "feature".length - 1)}\n`;
  for (const input of [line(LIMIT + 2), line(LIMIT * 4), "x".repeat(LIMIT * 3)]) {
    const r = await run(exe, ["raw", control(g, "main")], { input });
    assert.notEqual(r.code, 0, `${input.length} bytes`);
    assert.match(r.stdout, /E(2BIG|MSGSIZE|INVAL|FBIG|NAMETOOLONG|NOSPC)/);
  }
  assert.deepEqual(difference(before, snapshot(g.root)), []);
  assert.equal((await run(exe, ["raw", control(g, "main")], { input: line(LIMIT - 16) })).code, 0);
  assert.equal(tip(g.ds), 7);
});

test("the tail of an overlong line is not taken for a command", async (t) => {
  const g = await overlap(t),
    exe = await probePath();
  await run("bash", [
    "-c",
    '(head -c 70000 /dev/zero | tr "\\0" x; printf " feature\\n") | dd of="$1" bs=1024 status=none',
    "sh",
    control(g, "main"),
  ]);
  await run(exe, ["raw", control(g, "main")], { input: `${"y".repeat(70_000)} feature` });
  assert.equal(tip(g.ds), 6);
});

test("after a refused line the same file takes the next command", async (t) => {
  const g = await overlap(t);
  assert.notEqual((await ctl(control(g, "main"), "nosuch")).code, 0);
  assert.equal((await ctl(control(g, "main"), "feature")).code, 0);
  assert.equal(tip(g.ds), 7);
});
