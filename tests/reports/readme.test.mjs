// SPDX-License-Identifier: Apache-2.0
// The sessions in README.md about previews and conflicts, typed as they stand there: what is printed is what it says.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { run } from "../harness/proc.mjs";
import { LANCEFS, PROJECT, workspace } from "../harness/workspace.mjs";

// The indented blocks below a heading: [{ command, output: [line] }], up to the next heading of any level.
function session(heading) {
  const lines = fs.readFileSync(path.join(PROJECT, "README.md"), "utf8").split("\n"),
    start = lines.indexOf(heading);
  assert.notEqual(start, -1, `README.md has no "${heading}"`);
  const steps = [];
  for (const line of lines.slice(start + 1)) {
    if (/^#+ /.test(line)) break;
    if (!/^ {4}/.test(line)) continue;
    const text = line.slice(4);
    if (text.startsWith("$ ")) steps.push({ command: text.slice(2), output: [] });
    else if (steps.length) steps.at(-1).output.push(text);
  }
  return steps;
}

// What a script's shell says more than one that is typed to, and blank lines that only set commands apart.
const said = (text) => text.replace(/^bash: line \d+: /gm, "bash: ").replace(/\n+$/, "");

async function type(t, steps) {
  const w = workspace(t),
    bin = path.join(w.dir, "bin"),
    MARK = "-----8<-----";
  fs.mkdirSync(bin);
  fs.symlinkSync(path.resolve(LANCEFS), path.join(bin, "lancefs"));
  fs.mkdirSync(path.join(w.dir, "home"));
  fs.symlinkSync(path.join(PROJECT, "tests"), path.join(w.dir, "home/tests"));
  w.defer(() => run("fusermount3", ["-uz", path.join(w.dir, "home/mnt")]));
  const script = steps.map(({ command }) => `${command}\necho '${MARK}'\n`).join("");
  const r = await run("bash", [], {
    input: `mkdir -p mnt\nexec 2>&1\n${script}`.replace("&& mkdir mnt", "&& mkdir -p mnt"),
    cwd: path.join(w.dir, "home"),
    env: { LC_ALL: "C.UTF-8", PATH: `${bin}:${process.env.PATH}` },
    limitMs: 180_000,
  });
  assert.equal(r.timedOut, false, "the session hung");
  const parts = r.stdout.split(`${MARK}\n`);
  for (const [i, { command, output }] of steps.entries()) {
    const form = (text) => (command.startsWith("ls ") ? text.split(/\s+/) : text); // in a terminal ls makes columns
    assert.deepEqual(form(said(parts[i] ?? "")), form(output.join("\n").replace(/\n+$/, "")), `$ ${command}`);
  }
}

for (const heading of ["## See it first", "### Settling conflicts one by one"])
  test(`README.md, ${heading.replace(/^#+ /, "")}: what is typed prints what is written there`, async (t) => {
    const steps = session(heading);
    assert.ok(steps.length >= 8, `${steps.length} commands`);
    await type(t, steps);
  });
