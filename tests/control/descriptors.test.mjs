// SPDX-License-Identifier: Apache-2.0
// C21: descriptors that are duplicated, inherited, killed. A whole line runs once; half a line runs when the process that
// wrote it closes, and never when somebody else does or when it dies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { tip } from "../interop/manifest.mjs";
import { answerOf, ctlThrough } from "../harness/control.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { checkTip, control, mounted } from "../harness/tip.mjs";
import { probePath } from "../harness/workspace.mjs";
import { OVERLAP, rows } from "../harness/rows.mjs";

const ENGINE = "lance12";
const overlap = (t) => mounted(t, "overlap_deletes", ENGINE);
const UNION = OVERLAP.union;

const ONCE = {
  "a subshell writes through an inherited descriptor": 'exec 7>"$1"; (echo feature >&7; true); echo >&7; exec 7>&-',
  "three duplicates, each closed": 'exec 7>"$1"; exec 8>&7 9>&7; echo feature >&7; exec 8>&-; exec 9>&-; exec 7>&-',
  "written by a child, closed by the parent": 'exec 7>"$1"; bash -c "echo feature >&7"; exec 7>&-',
  "halves by one process through two duplicates":
    'exec 7>"$1" 8>&7; printf fea >&7; printf "ture\\n" >&8; exec 7>&- 8>&-',
  "children that end with the descriptor open":
    'exec 7>"$1"; for i in 1 2 3 4 5; do bash -c true; done; echo feature >&7; for i in 1 2 3; do bash -c true; done; exec 7>&-',
};
for (const [name, script] of Object.entries(ONCE)) {
  test(`C21 ${name}: one merge`, async (t) => {
    const g = await overlap(t);
    await must(sh(script, [control(g, "main")]));
    assert.equal(tip(g.ds), 7);
    await checkTip(g, "main", UNION, { storage: false });
  });
}

test("C21 closes by forked children run nothing; the writer's own close runs the line once", async (t) => {
  const g = await overlap(t),
    p = converse(await probePath(), ["children", control(g, "main"), "feature", "5"]);
  assert.equal(await p.line(), "children-gone");
  assert.equal(tip(g.ds), 6, "five children closed the descriptor or died with it");
  p.say("go on");
  assert.equal((await p.close()).code, 0);
  assert.equal(tip(g.ds), 7);
});

test("C21 kill -9 before the newline: nothing happens", async (t) => {
  const g = await overlap(t),
    p = converse(await probePath(), ["hold", control(g, "main"), "feature"]);
  assert.equal(await p.line(), "written");
  await p.kill("SIGKILL");
  // Whatever the kernel still sends for the dead process comes before the answer to a later command.
  assert.equal((await ctlThrough(control(g, "main"), "feature dry-run\n")).code, 0);
  assert.equal(tip(g.ds), 6);
});

test("C21 half a line of one descriptor is not joined with another's", async (t) => {
  const g = await overlap(t),
    p = converse(await probePath(), ["hold", control(g, "main"), "no-such-"]);
  assert.equal(await p.line(), "written");
  assert.equal((await sh('echo feature > "$1"', [control(g, "main")])).code, 0);
  assert.equal(tip(g.ds), 7);
  await p.kill();
});

test("C21 twenty subshells with inherited descriptors, one line each: one merge, the others up-to-date", async (t) => {
  const g = await overlap(t);
  const r = await sh(
    'exec 7>"$1"; for i in $(seq 20); do (echo feature > "$1" || echo failed) & done; wait; exec 7>&-',
    [control(g, "main")],
  );
  assert.equal(r.code, 0, r.stderr);
  assert.equal(r.stdout, "", r.stderr);
  assert.equal(tip(g.ds), 7);
});

test("the descriptor that wrote a command reads its answer, from the beginning", async (t) => {
  const g = await overlap(t),
    r = await ctlThrough(control(g, "main"), "feature\n");
  assert.equal(r.errno, undefined);
  assert.equal(r.answer.result, "merged", r.answer.text);
  assert.equal(r.answer.version, "7");
});

test("a shell reads its answer through descriptor 7", async (t) => {
  const g = await overlap(t),
    r = await must(sh('exec 7<>"$1"; echo feature >&7 && cat <&7', [control(g, "main")]));
  assert.match(r.stdout, /^result: merged$/m);
  assert.match(r.stdout, /^version: 7$/m);
});

test("a failed command's answer is read through the same descriptor too", async (t) => {
  const g = await mounted(t, "delete_vs_update", ENGINE),
    r = await ctlThrough(control(g, "main"), "u_u\n");
  assert.equal(r.errno, "ECANCELED");
  assert.equal(r.answer.result, "conflict", r.answer.text);
});

test("a command in pieces through one descriptor", async (t) => {
  const g = await overlap(t),
    r = await ctlThrough(control(g, "main"), "fea", "ture ", "mess", 'age="in pieces"', "\\n");
  assert.equal(r.errno, undefined, r.answer.text);
  assert.equal(r.answer.result, "merged");
  assert.equal(tip(g.ds), 7);
});

test("two shells never see each other's answer", async (t) => {
  const g = await mounted(t, "siblings", ENGINE),
    file = control(g, "main");
  // Both have the file open before either writes; they write in turn and read only when both have written.
  const script = 'exec 7<>"$1"; echo open; read go; echo "$2" >&7; echo "written $?"; read go; cat <&7';
  const shells = ["x dry-run", "nosuch"].map((line) => converse("bash", ["-c", script, "sh", file, line]));
  for (const s of shells) assert.equal(await s.line(), "open");
  shells[0].say("");
  assert.equal(await shells[0].line(), "written 0");
  shells[1].say("");
  assert.equal(await shells[1].line(), "written 1");
  shells[0].say("");
  const first = await shells[0].line();
  assert.match(first, /^result: dry-run/, "the first shell's own answer, though the second's came later");
  shells[1].say("");
  assert.match(await shells[1].line(), /^result: error/);
  await Promise.all(shells.map((s) => s.close()));
});

test("a new reader sees the usage and the last result of this branch, not of another", async (t) => {
  const g = await mounted(t, "siblings", ENGINE);
  const fresh = await must(run("cat", [control(g, "s")]));
  assert.match(fresh.stdout, /SOURCE/, "the usage");
  assert.doesNotMatch(fresh.stdout, /^result:/m);
  await must(sh('echo x > "$1"', [control(g, "main")]));
  const after = await must(run("cat", [control(g, "main")]));
  assert.match(after.stdout, /SOURCE/);
  assert.match(after.stdout, /^result: fast-forward$/m);
  assert.doesNotMatch((await must(run("cat", [control(g, "s")]))).stdout, /^result:/m);
});

test("the answer is `key: value` lines that grep finds", async (t) => {
  const g = await overlap(t);
  const r = await must(sh('echo feature > "$1" && grep -c "^result: merged$" "$1"', [control(g, "main")]));
  assert.equal(r.stdout, "1\n");
  const a = await answerOf(control(g, "main"));
  for (const key of ["result", "source", "target", "base", "version", "transaction", "fragments", "rows", "conflicts"])
    assert.ok(typeof a[key] === "string" && a[key] !== "", `${key}: in ${a.text}`);
});
