// SPDX-License-Identifier: Apache-2.0
// A conflict always names something: ff=only has its own, and where there are more than an answer lists, it says how many it
// left out; they come when the others are chosen.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { configure } from "../interop/configure.mjs";
import { load } from "../interop/manifest.mjs";
import { aborts, conflicts, conflictsDir, continues, doesNotContinue, numbers, stopsOn } from "../harness/conflicts.mjs";
import { ctlThrough } from "../harness/control.mjs";
import { rows } from "../harness/rows.mjs";
import { checkThenUnmount, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, scratch } from "../harness/verbs.mjs";

const TEN = rows(0, 10);
const LISTED = 1000,
  KEPT = 10000;
const keys = (n, value) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, `${value}${i}`]));
const listed = (a) => [...a.text.matchAll(/^ {2}- kind: /gm)].length;

// n config keys that both sides changed, each its own way.
async function clashing(t, engine, n) {
  const g = await scratch(t, engine, TEN);
  configure(g.ds, { config: keys(n, "base") });
  await g.fork("f");
  configure(g.ds, { config: keys(n, "ours") });
  configure(g.storage("f"), { config: keys(n, "theirs") });
  return g;
}
const chooseAll = (g, side) => {
  for (const k of numbers(g, "main")) fs.writeFileSync(path.join(conflictsDir(g, "main"), `${k}`, "choice"), `${side}\n`);
};

onEach("ff=only on a target that has moved is a conflict of the branch: listed, with the three states, and no choice settles it", async (t, engine) => {
  const g = await scratch(t, engine, TEN);
  await g.fork("f");
  await g.op("f", "add", { rows: rows(100, 2, "f") });
  await g.op("main", "delete", { where: "id = 5" });
  const states = { kind: "moved", unit: "branch main", base: "main@1", ours: "main@2", theirs: "f@2" };
  for (const line of ["f ff=only dry-run", "f ff=only"]) {
    const a = await mergeFails(g, "main", line, "ECANCELED", "conflict");
    assert.equal(a.conflicts, "1", a.text);
    for (const [key, value] of Object.entries(states)) assert.match(a.text, new RegExp(`^ {2}[- ] ${key}: ${value}$`, "m"));
    assert.match(a.text, /main has moved since f left it, so this is no fast-forward/);
  }
  assert.deepEqual(conflicts(g, "main"), [{ ...states, choice: "" }]);
  const r = await ctlThrough(path.join(conflictsDir(g, "main"), "0", "choice"), "theirs\n");
  assert.equal(r.errno, "EOPNOTSUPP", r.answer.text);
  assert.match(r.answer.text, /no fast-forward/);
  await aborts(g, "main");
  await merge(g, "main", "f");
  await checkThenUnmount(g, { main: [...TEN.filter((x) => x.id !== 5), ...rows(100, 2, "f")] });
});

onEach("more conflicts than an answer lists: it counts all of them, and the others come when those are chosen", async (t, engine) => {
  const n = LISTED + 100,
    g = await clashing(t, engine, n);
  for (const line of ["f dry-run", "f"]) {
    const a = await mergeFails(g, "main", line, "ECANCELED", "conflict");
    assert.equal(a.conflicts, `${n}`);
    assert.equal(listed(a), LISTED);
    assert.match(a.text, /^not-listed: 100$/m);
    assert.doesNotMatch(a.text, /one by one/);
  }
  assert.equal(numbers(g, "main").length, LISTED);
  chooseAll(g, "theirs");
  const a = await doesNotContinue(g, "main");
  assert.equal(a.conflicts, "100");
  assert.equal(listed(a), 100);
  assert.doesNotMatch(a.text, /not-listed/);
  assert.equal(numbers(g, "main").length, n);
  chooseAll(g, "theirs");
  const done = await continues(g, "main");
  assert.match(done.text, new RegExp(`settled by choice: 0 ours, ${n} theirs`));
  assert.deepEqual(load(g.ds).config, keys(n, "theirs"));
  await checkThenUnmount(g, { main: TEN });
});

onEach("more conflicts than can be chosen one by one: said at once; a strategy decides", async (t, engine) => {
  const n = KEPT + 1,
    g = await clashing(t, engine, n),
    a = await mergeFails(g, "main", "f", "ECANCELED", "conflict");
  assert.equal(a.conflicts, `${n}`);
  assert.match(a.text, new RegExp(`^not-listed: ${n - LISTED}$`, "m"));
  assert.match(a.text, new RegExp(`at most ${KEPT} conflicts of one command can be chosen one by one: .*config=`));
  await aborts(g, "main");
  await merge(g, "main", "f config=source-wins");
  assert.deepEqual(load(g.ds).config, keys(n, "theirs"));
  await checkThenUnmount(g, { main: TEN });
});
