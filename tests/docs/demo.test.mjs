// SPDX-License-Identifier: Apache-2.0
// scripts/demo.sh plays what README shows as the first session, and README's pictures are what scripts/pictures.sh makes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { must, run } from "../harness/proc.mjs";
import { PROJECT, workspace } from "../harness/workspace.mjs";
import { answers, normal, README, sessions } from "./play.mjs";

test("demo.sh is README's first session, command by command and answer by answer", async () => {
  const r = await must(run(path.join(PROJECT, "scripts/demo.sh"), [], { env: { LC_ALL: "C" }, limitMs: 300_000 })),
    from = r.stdout.indexOf("\n$ "),
    [played] = sessions(`## demo\n\n\`\`\`\n${normal(r.stdout.slice(from))}\n\`\`\`\n`);
  const shown = sessions(fs.readFileSync(README, "utf8")).find((s) => s.section === "A first session").steps.slice(0, played.steps.length);
  assert.deepEqual(played.steps.map((s) => s.command), shown.map((s) => s.command));
  shown.forEach((step, i) => assert.ok(answers(step, played.steps[i].expected), `${step.command}: ${played.steps[i].expected.join("\n")}`));
  assert.equal(shown.at(-1).command, "fusermount3 -u mnt", "to the end");
});

test("the pictures are those of a merge and a rebase that are made now", async (t) => {
  const w = workspace(t),
    readme = fs.readFileSync(README, "utf8");
  await must(run(path.join(PROJECT, "scripts/pictures.sh"), [w.dir], { env: { LANCEFS: process.env.LANCEFS && path.resolve(process.env.LANCEFS) } }));
  for (const picture of ["merge.svg", "rebase.svg"]) {
    assert.ok(readme.includes(`](pictures/${picture})`), `README shows ${picture}`);
    assert.equal(fs.readFileSync(path.join(w.dir, picture), "utf8"), fs.readFileSync(path.join(PROJECT, "pictures", picture), "utf8"), `${picture}: run scripts/pictures.sh`);
  }
});
