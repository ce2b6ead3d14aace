// SPDX-License-Identifier: Apache-2.0
// The words of a merge command: refs, options, the control file that names its target, and what wrong words are called.
import assert from "node:assert/strict";
import { test } from "node:test";
import path from "node:path";
import { load, tip } from "../interop/manifest.mjs";
import { ctl, ctlThrough } from "../harness/control.mjs";
import { must, sh } from "../harness/proc.mjs";
import { OVERLAP, changed, rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkCommitted, checkTip, control, merges, mounted, stops } from "../harness/tip.mjs";
import { difference, snapshot } from "../harness/workspace.mjs";

const ENGINE = "lance10";
const overlap = (t, options) => mounted(t, "overlap_deletes", ENGINE, options);
const siblings = (t, options) => mounted(t, "siblings", ENGINE, options);
const MAIN = OVERLAP.main;
const UNION = OVERLAP.union;

// --- refs

test('refs: feature, tree/feature, feature@N and "feature" in quotes name one thing', async (t) => {
  for (const ref of ["feature", "tree/feature", "feature@6", "tree/feature@6", '"feature"']) {
    await t.test(ref, async (sub) => {
      const g = await overlap(sub),
        a = await merges(g, "main", ref);
      assert.equal(a.source, "feature@6");
      await checkTip(g, "main", UNION, { view: false });
    });
  }
});

test("refs: an older version of the source brings what it held", async (t) => {
  const g = await overlap(t);
  const a = await merges(g, "main", "feature@4"); // its first delete only
  assert.equal(a.source, "feature@4");
  await checkTip(g, "main", without(MAIN, span(10, 14)));
});

const UNKNOWN = {
  nosuch: ["ENOENT"],
  "tree/nosuch": ["ENOENT"],
  Feature: ["ENOENT"],
  "feature@99": ["ENOENT"],
  "feature@1": ["ENOENT"], // feature begins at version 3
  "../feature": ["ENOENT", "EINVAL"], // unknown, or no name at all
  "feature@x": ["EINVAL"],
  "feature@-1": ["EINVAL"],
  "feature@": ["EINVAL"],
  "feature@99999999999999999999999": ["EINVAL", "ENOENT"],
};
for (const [ref, errnos] of Object.entries(UNKNOWN)) {
  test(`refs: ${ref} is ${errnos.join(" or ")}`, async (t) => {
    const a = await stops(await overlap(t), "main", ref, errnos, "error");
    const name = ref.split("@")[0].replace("tree/", "");
    assert.ok(a.error.includes(name), `the error repeats the name ${name}: ${a.error}`);
  });
}

test("refs: a tag that is not there is ENOENT", async (t) => {
  const g = await overlap(t);
  for (const line of ["tags/nosuch", "tags/", "tags/a/b", "tags/../x"]) {
    const a = await stops(g, "main", line, "ENOENT", "error");
    assert.match(a.error, /there is no tag/);
  }
  await stops(g, "main", "tags/nosuch@3", "EINVAL", "error");
  const r = await ctl(path.join(g.m.mnt, ".merge"), "feature tags/nosuch");
  assert.equal(r.errno, "EINVAL", "a target is a branch");
});

test("refs: a branch into itself is up-to-date", async (t) => {
  const g = await overlap(t);
  await merges(g, "main", "main", "up-to-date");
  await merges(g, "feature", "feature", "up-to-date");
  await merges(g, "main", "main@2", "up-to-date");
});

test("refs: `--` ends the options: a branch named -rf", async (t) => {
  const g = await mounted(t, "names", ENGINE);
  await merges(g, "main", "-- -rf", "fast-forward");
  await checkTip(g, "main", [...rows(0, 10), ...rows(100, 1, "b")]);
});

// --- MNT/.merge

test("MNT/.merge takes source and target", async (t) => {
  const g = await overlap(t),
    before = tip(g.ds);
  const r = await ctl(path.join(g.m.mnt, ".merge"), "feature main");
  assert.equal(r.code, 0, r.stderr);
  assert.equal(r.answer.result, "merged");
  assert.equal(r.answer.target, "main@6");
  checkCommitted(g, "main", before, r);
  const back = await ctl(path.join(g.m.mnt, ".merge"), "main feature ff=only");
  assert.equal(back.answer.result, "fast-forward", back.answer.text);
  await checkTip(g, "main", UNION);
  await checkTip(g, "feature", UNION);
});

for (const [line, errno] of [
  ["feature", "EINVAL"],
  ["feature nosuch", "ENOENT"],
  ["nosuch main", "ENOENT"],
  ["feature main nonsense=1", "EINVAL"],
]) {
  test(`MNT/.merge: \`${line}\` is ${errno}`, async (t) => {
    const g = await overlap(t),
      before = snapshot(g.root),
      r = await ctl(path.join(g.m.mnt, ".merge"), line);
    assert.equal(r.errno, errno, r.stderr);
    assert.deepEqual(difference(before, snapshot(g.root)), []);
  });
}

// --- options

test("dry-run: the whole answer, nothing written", async (t) => {
  const g = await overlap(t),
    before = snapshot(g.root);
  const r = await ctl(control(g, "main"), "feature dry-run");
  assert.equal(r.code, 0, r.stderr);
  assert.equal(r.answer.result, "dry-run");
  assert.deepEqual(difference(before, snapshot(g.root)), []);
  const real = await merges(g, "main", "feature");
  for (const key of ["source", "target", "base", "fragments", "rows", "conflicts"])
    assert.equal(r.answer[key], real[key], key);
  await checkTip(g, "main", UNION);
});

test("dry-run of a conflict says so and writes nothing", async (t) => {
  const g = await mounted(t, "delete_vs_update", ENGINE),
    before = snapshot(g.root);
  const r = await ctl(control(g, "main"), "u_u dry-run");
  assert.match(r.answer.text, /conflicts: [1-9]/);
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("dry-run of mode=copy and of a fast-forward write nothing either", async (t) => {
  const g = await siblings(t),
    before = snapshot(g.root);
  for (const line of ["x dry-run mode=copy", "x dry-run mode=link", "x dry-run ff=never"])
    assert.equal((await ctl(control(g, "main"), line)).code, 0, line);
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("expect=: only if the tip is still that version", async (t) => {
  const g = await overlap(t);
  await stops(g, "main", "feature expect=5", "ESTALE", "error");
  await stops(g, "main", "feature expect=7", "ESTALE", "error");
  await merges(g, "main", "feature expect=6");
  await stops(g, "main", "feature expect=6", "ESTALE");
});

test("ff=never: a version of its own where a fast-forward would do", async (t) => {
  const g = await siblings(t),
    a = await merges(g, "main", "x ff=never");
  assert.equal(a.result, "merged");
  await checkTip(g, "main", changed(rows(0, 10), 1, { v: "x" }));
  await merges(g, "main", "x ff=never", "up-to-date");
});

test("ff=only: a fast-forward or nothing", async (t) => {
  const g = await siblings(t);
  await merges(g, "main", "x ff=only", "fast-forward");
  await stops(g, "main", "s ff=only");
  await merges(g, "main", "x ff=only", "up-to-date");
  await merges(g, "main", "s ff=auto");
});

test("message= is kept with the commit under Lance's own key, blanks and quotes too", async (t) => {
  for (const [line, message] of [
    ['feature message="week 12"', "week 12"],
    ["feature message=short", "short"],
    ['message="before the source" feature', "before the source"],
    ['feature message="é ✓ # = x"', "é ✓ # = x"],
  ]) {
    await t.test(line, async (sub) => {
      const g = await overlap(sub);
      await merges(g, "main", line);
      const p = load(g.ds).transaction.properties;
      assert.equal(p.__lance_commit_message, message);
    });
  }
});

test("the commit tells its own story: lancefs.op and lancefs.source in the transaction, the lineage in table metadata", async (t) => {
  const g = await overlap(t);
  await merges(g, "main", "feature");
  const m = load(g.ds);
  assert.equal(m.transaction.properties["lancefs.op"], "merge");
  assert.equal(m.transaction.properties["lancefs.source"], "feature@6");
  assert.match(m.metadata["lancefs.vector"], /^main:\d+,[0-9a-f]{32}:6$|^[0-9a-f]{32}:6,main:\d+$/);
});

test("options stand before or after the source", async (t) => {
  const g = await siblings(t);
  await merges(g, "main", "ff=never x", "merged");
  await merges(g, "main", "mode=copy s expect=2");
});

const WRONG = [
  "feature nonsense=1",
  "feature mode=teleport",
  "feature mode=",
  "feature ff=sometimes",
  "feature expect=x",
  "feature expect=",
  "feature --force",
  "feature -f",
  "-rf",
  'feature message="no end',
  "mode=graft",
  "feature dry-run=maybe",
  "feature strategy=guess",
  "feature only=",
  "feature only=rows,",
  "feature only=rows,colums",
  "feature fieldids=maybe",
  "feature base=",
  "feature base=main@x",
  "feature only=rows replay",
  "feature only=rows ff=only",
  "feature base=main@2 replay",
  "feature feature base=main@2",
  "feature feature only=rows",
  "feature steps=2",
  "feature squash",
];
for (const line of WRONG) {
  test(`wrong words are EINVAL and named: ${line}`, async (t) => {
    const a = await stops(await overlap(t), "main", line, "EINVAL", "error");
    assert.doesNotMatch(a.text, /^version:/m);
  });
}

test("a word that is no option is a second source: feature nonsense is ENOENT, and nothing is merged", async (t) => {
  const a = await stops(await overlap(t), "main", "feature nonsense", "ENOENT", "error");
  assert.match(a.error, /nonsense/);
});

// Which verb takes which option: one that means nothing to a verb is never ignored.
const OPTIONS = {
  "strategy=dest-wins": [".merge", ".cherry-pick", ".rebase", ".revert"],
  "rows=dest-wins": [".merge", ".cherry-pick", ".rebase", ".revert"],
  "columns=dest-wins": [".merge", ".cherry-pick", ".rebase", ".revert"],
  "schema=dest-wins": [".merge", ".cherry-pick", ".rebase", ".revert"],
  "config=dest-wins": [".merge", ".cherry-pick", ".rebase", ".revert"],
  "indexes=dest-wins": [".merge", ".cherry-pick", ".rebase", ".revert"],
  "only=rows,columns,schema,config,indexes": [".merge", ".cherry-pick", ".revert"],
  "mode=link": [".merge", ".cherry-pick"],
  "fieldids=strict": [".merge", ".cherry-pick", ".rebase"],
  "ff=auto": [".merge"],
  "base=main@2": [".merge"],
  replay: [".merge"],
  squash: [".cherry-pick", ".rebase"],
  "steps=1": [".undo"],
  "from=3": [],
  "older-than=7d": [],
  "expect=6": [".merge", ".cherry-pick", ".rebase", ".revert", ".undo"],
  'message="a b"': [".merge", ".cherry-pick", ".rebase", ".revert", ".undo"],
  "property.k=v": [".merge", ".cherry-pick", ".rebase", ".revert", ".undo"],
};
const WORDS = { ".merge": "feature", ".cherry-pick": "feature@6", ".rebase": "main", ".revert": "6", ".undo": "" };
test("each verb takes the options that mean something to it, and says of the others whose they are", async (t) => {
  const g = await overlap(t);
  for (const [file, word] of Object.entries(WORDS))
    for (const [option, takers] of Object.entries(OPTIONS)) {
      const r = await ctl(control(g, file === ".rebase" ? "feature" : "main", file), `${word} ${option} dry-run`),
        name = option.replace(/=.*|^(property\.).*/, "$1");
      if (takers.includes(file)) {
        assert.notEqual(r.errno, "EINVAL", `${file} takes ${option}: ${r.answer.text}`);
        continue;
      }
      assert.equal(r.errno, "EINVAL", `${file} does not take ${option}: ${r.answer.text}`);
      assert.ok(r.answer.error.startsWith(name), r.answer.error);
      assert.ok(r.answer.error.includes(`no option of ${file}`), r.answer.error);
      for (const taker of takers) assert.ok(r.answer.error.includes(taker), r.answer.error);
    }
  assert.equal(tip(g.ds), 6);
});

// --- -o ro, and what the answer is like

test("-o ro: every command is EROFS, reading the control file works", async (t) => {
  const g = await overlap(t, { options: ["ro"] }),
    before = snapshot(g.root);
  for (const line of ["feature", "feature dry-run"]) {
    const r = await sh('echo "$1" > "$2"', [line, control(g, "main")], { env: { LC_ALL: "C" } });
    assert.match(r.stderr, /Read-only file system/);
  }
  assert.match((await must(sh('cat "$1"', [control(g, "main")]))).stdout, /SOURCE/);
  assert.deepEqual(difference(before, snapshot(g.root)), []);
  await checkTip(g, "main", MAIN);
});

test("the answer is valid YAML of plain scalars: no key twice, no tab, ends with a newline", async (t) => {
  const g = await overlap(t);
  const { answer } = await ctlThrough(control(g, "main"), 'feature message="a: b # c"\n');
  const lines = answer.text.split("\n");
  assert.equal(lines.at(-1), "");
  const keys = lines.map((l) => /^([\w.-]+):/.exec(l)?.[1]).filter(Boolean);
  assert.deepEqual(keys, [...new Set(keys)]);
  for (const l of lines.slice(0, -1)) assert.match(l, /^([a-z][\w.-]*:( \S.*)?|\s*- .*|\s+\S.*|#.*)$/, l);
});

test("a commit by stock between two merges is seen without a remount", async (t) => {
  const g = await siblings(t);
  await merges(g, "main", "x", "fast-forward");
  await stock[ENGINE].op(g.ds, "main", "add", { rows: rows(80, 1) });
  const a = await merges(g, "main", "s");
  assert.equal(a.target, "main@3");
  await checkTip(g, "main", [...changed(changed(rows(0, 10), 1, { v: "x" }), 2, { v: "s" }), ...rows(80, 1)]);
});
