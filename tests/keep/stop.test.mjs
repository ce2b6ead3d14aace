// SPDX-License-Identifier: Apache-2.0
// The daemon is killed before each call of .gc and of .rehome that changes the file system: stock Lance reads every branch
// as before, the check finds nothing lost, and the command comes through when it is given again.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { OVERLAP } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, merges, onEach } from "../harness/tip.mjs";
import { generate, LANCEFS, stopperPath, workspace } from "../harness/workspace.mjs";

const FEATURE = OVERLAP.feature;
const UNION = OVERLAP.union;
const COMMANDS = { ".gc": ["older-than=0s", ".gc"], ".rehome": ["all", "tree/main/.rehome"] };

// A merged data set with something to remove in main, on the branch and in line storage; kept to be set back.
async function prepare(t, engine, command) {
  const w = workspace(t),
    g = { ...(await generate(w, "overlap_deletes", engine)) },
    m = await mount(w, g.ds),
    op = (...a) => stock[engine].op(g.ds, ...a);
  await merges({ ...g, m }, "main", "feature");
  await m.unmount();
  await op("main", "index", { column: "id" });
  if (command === ".gc") await op("main", "optimize").then(() => op("main", "clean")); // nobody names the grafts any more
  const stem = (c) => "0".repeat(24) + c.repeat(26);
  for (const [home, c] of [["", "a"], ["tree/feature", "b"], ["_lancefs/lines/main", "c"]]) {
    fs.mkdirSync(path.join(g.ds, home, "data"), { recursive: true });
    fs.writeFileSync(path.join(g.ds, home, "data", `${stem(c)}.lance`), "x");
  }
  const saved = path.join(w.dir, "saved");
  await must(run("cp", ["-a", g.ds, saved]));
  g.reset = async () => {
    await must(run("rm", ["-rf", "--one-file-system", g.ds]));
    await must(run("cp", ["-a", saved, g.ds]));
  };
  return { w, g };
}

async function stopped(w, g, command, n) {
  const [words, file] = COMMANDS[command],
    at = path.join(w.dir, `${command}-${n}`),
    env = { LD_PRELOAD: await stopperPath(), LANCEFS_STOP_ARMED: `${at}.armed`, LANCEFS_STOP_COUNT: `${at}.counts` };
  await g.reset();
  const m = await mount(w, g.ds, { env });
  fs.writeFileSync(`${at}.armed`, `${n}\n`);
  const r = await ctl(path.join(m.mnt, file), words);
  await (n === 0 ? m.unmount() : m.kill());
  return { code: r.code, calls: fs.readFileSync(`${at}.counts`, "utf8").trim().split("\n") };
}

async function checkAfter(w, g, command, where) {
  const check = async (what) => {
    await checkStorage(g, "main", UNION);
    await checkStorage(g, "feature", FEATURE);
    const r = await run(path.join(path.dirname(LANCEFS), "fsck.lancefs"), [g.ds]);
    assert.equal(r.code, 0, `${where}, ${what}: ${r.stdout}`);
  };
  await check("after the stop");
  const m = await mount(w, g.ds),
    [words, file] = COMMANDS[command],
    r = await ctl(path.join(m.mnt, file), words);
  assert.equal(r.code, 0, `${where}, again: ${r.answer.text}`);
  await m.unmount();
  await check("after the second try");
}

for (const command of Object.keys(COMMANDS))
  onEach(`${command}, killed before each call that changes something`, async (t, engine) => {
    const { w, g } = await prepare(t, engine, command);
    const whole = await stopped(w, g, command, 0);
    assert.equal(whole.code, 0);
    assert.ok(whole.calls.length >= 3, `there is something to stop: ${whole.calls}`);
    for (let n = 1; n <= whole.calls.length; n++) {
      const { code } = await stopped(w, g, command, n),
        where = `${command}, stopped before ${whole.calls[n - 1]}`;
      assert.notEqual(code, 0, `${where}: it never came to it`);
      await checkAfter(w, g, command, where).catch((e) => {
        e.message = `${where}: ${e.message}`;
        throw e;
      });
    }
    t.diagnostic(`${whole.calls.length} calls`);
  });
