// SPDX-License-Identifier: Apache-2.0
// .conflicts of a branch: what it shows, choices, continue and abort.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { ctl, ctlThrough } from "./control.mjs";
import { expectRows } from "./rows.mjs";
import { stock } from "./stock.mjs";
import { control } from "./tip.mjs";
import { difference, ENGINES, snapshot } from "./workspace.mjs";

export const conflictsDir = (g, branch) => path.join(g.m.tree(branch), ".conflicts");
// The numbers in .conflicts.
export const numbers = (g, branch) => fs.readdirSync(conflictsDir(g, branch)).map(Number).sort((a, b) => a - b);
const TEXTS = ["kind", "unit", "base", "ours", "theirs", "choice"];

// One conflict: each text without its newline.
export const conflict = (g, branch, k) =>
  Object.fromEntries(TEXTS.map((name) => [name, fs.readFileSync(path.join(conflictsDir(g, branch), `${k}`, name), "utf8").replace(/\n$/, "")]));
export const conflicts = (g, branch) => numbers(g, branch).map((k) => conflict(g, branch, k));

// echo side > .conflicts/k/choice: { code, errno, answer } as read through the same descriptor.
export const choose = (g, branch, k, side) => ctlThrough(path.join(conflictsDir(g, branch), `${k}`, "choice"), `${side}\n`);
export async function chooses(g, branch, k, side) {
  const r = await choose(g, branch, k, side);
  assert.equal(r.errno, undefined, `${side} for conflict ${k}: ${r.errno} ${r.answer.text}`);
  assert.equal(conflict(g, branch, k).choice, side);
}

// The rows of one side of a conflict, by both engines.
export async function checkRows(g, branch, k, side, rows) {
  for (const e of ENGINES)
    expectRows(await stock[e].read(path.join(conflictsDir(g, branch), `${k}`, `${side}.lance`)), rows, `${side} of conflict ${k}, read by ${e}`);
}

// The command stops on `n` conflicts, and .conflicts tells what the answer tells.
export async function stopsOn(g, branch, line, n, file = ".merge") {
  const before = snapshot(g.root),
    r = await ctl(control(g, branch, file), line);
  assert.equal(r.errno, "ECANCELED", r.answer.text);
  assert.equal(r.answer.result, "conflict", r.answer.text);
  const told = [...r.answer.text.matchAll(/^ {2}- kind: (.*)\n {4}unit: (.*)$/gm)].map((m) => `${m[1]}|${m[2]}`),
    shown = conflicts(g, branch).map((c) => `${c.kind}|${c.unit}`);
  if (n !== undefined) assert.equal(told.length, n, r.answer.text);
  assert.deepEqual(shown, told, "what .conflicts shows is what the answer says");
  assert.deepEqual(difference(before, snapshot(g.root)), [], "the storage did not change");
  return r.answer;
}

const said = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text}`;
export async function continues(g, branch, result = "merged", { line = "continue", file = ".merge" } = {}) {
  const r = await ctl(control(g, branch, file), line);
  assert.equal(r.code, 0, said(r));
  assert.ok([result].flat().includes(r.answer.result), said(r));
  assert.deepEqual(numbers(g, branch), [], "nothing waits any more");
  return r.answer;
}
export async function doesNotContinue(g, branch, errno = "ECANCELED", line = "continue", file = ".merge") {
  const before = snapshot(g.root),
    r = await ctl(control(g, branch, file), line);
  assert.equal(r.errno, errno, said(r));
  assert.deepEqual(difference(before, snapshot(g.root)), [], "the storage did not change");
  return r.answer;
}
export async function aborts(g, branch, file = ".merge") {
  const r = await ctl(control(g, branch, file), "abort");
  assert.equal(r.code, 0, said(r));
  assert.equal(r.answer.result, "aborted");
  assert.deepEqual(numbers(g, branch), []);
}
