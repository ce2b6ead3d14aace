// SPDX-License-Identifier: Apache-2.0
// Every shell session in README is played on a real mount, and answers what README says: docs that rot fail.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import { workspace } from "../harness/workspace.mjs";
import { answers, fits, play, README, sessions } from "./play.mjs";

// Sessions that cannot be played as they stand, and what shows them instead.
const ELSEWHERE = {
  "Waiting for a command": "its lines hang on the disk's speed; control/waiting.test.mjs",
};
const found = sessions(fs.readFileSync(README, "utf8"));

test("README has sessions, and each is played", () => {
  assert.ok(found.length >= 8, `${found.length} sections with sessions`);
  for (const section of Object.keys(ELSEWHERE)) assert.ok(found.some((s) => s.section === section), `no session ${section}`);
});

for (const { section, steps } of found) {
  test(`README: ${section}`, { skip: ELSEWHERE[section] }, async (t) => {
    const played = await play(workspace(t), steps);
    played.forEach(({ code, lines }, i) => {
      const { command, expected, line } = steps[i];
      assert.ok(answers(steps[i], lines), `README.md:${line}: ${command}\nanswers\n${lines.join("\n")}\ninstead of\n${expected.join("\n")}`);
      assert.ok(code === 0 || expected.length, `README.md:${line}: ${command} fails with exit status ${code} and says nothing`);
    });
  });
}

test("the player itself: prompts, continued lines, output, any lines, identifiers", () => {
  const [one, two] = sessions("## A\n\n    $ a\n    x\n\n    y\n\n    $ b <<E\n    > c\n    > E\n\ntext\n\n## B\n\n```console\n$ d\n...\nz\n```\n");
  assert.deepEqual(one.steps.map((s) => [s.command, s.expected]), [["a", ["x", "", "y"]], ["b <<E\nc\nE", []]]);
  assert.deepEqual(two.steps.map((s) => [s.command, s.expected]), [["d", ["...", "z"]]]);
  assert.ok(fits(["1", "2", "z"], ["...", "z"]) && fits(["z"], ["...", "z"]) && fits([], ["..."]));
  assert.ok(!fits(["1", "z", "2"], ["...", "z"]) && !fits(["a"], []) && !fits([], ["a"]));
  assert.ok(fits(["t 2026-01-02T03:04:05Z 0123456789abcdef0123456789abcdef"], ["t 2020-01-01T00:00:00Z ffffffffffffffffffffffffffffffff"]));
});
