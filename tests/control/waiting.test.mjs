// SPDX-License-Identifier: Apache-2.0
// Waiting for a command and watching it: poll(2) on control files, and reading on while a long copy goes on.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load } from "../interop/manifest.mjs";
import { answerOf, ctl, parseAnswer } from "../harness/control.mjs";
import { watchedMount } from "../harness/calls.mjs";
import { barrier, hooksIn } from "../harness/hooks.mjs";
import { mount } from "../harness/mount.mjs";
import { converse, LIMIT_MS } from "../harness/proc.mjs";
import { OVERLAP } from "../harness/rows.mjs";
import { checkTip, control, onEach } from "../harness/tip.mjs";
import { generate, probePath, stopperPath, workspace } from "../harness/workspace.mjs";

const ENGINE = "lance12";
// A mount whose merges stop in a hook until the test lets them go on.
async function held(t) {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", ENGINE),
    hooks = hooksIn(w),
    stop = await barrier(w, "hook");
  hooks.set("pre-merge", stop.script);
  return { w, ...g, stop, m: await mount(w, g.ds, { options: [hooks.option] }) };
}
const talk = async (...args) => converse(await probePath(), args);
async function rest(child) {
  const lines = [];
  for (;;) {
    const line = await child.line().catch(() => undefined);
    if (line === undefined) return lines;
    lines.push(line);
  }
}

test("poll: another shell's file is ready for reading and writing when the command ends, not before", async (t) => {
  const g = await held(t),
    running = ctl(control(g, "main"), "feature");
  await g.stop.reached();
  const poller = await talk("poll", control(g, "main"), "in");
  assert.equal(await poller.line(), "events", "while it runs: nothing");
  await g.stop.release();
  assert.equal(await poller.line(), "events in");
  const [now, ...text] = await rest(poller);
  assert.equal(now, "events in out pri", "one has ended since it was read last");
  assert.equal(text.pop(), "events in out", "it has been read");
  const a = parseAnswer(text.join("\n"));
  assert.equal(a.result, "merged", "what poll waited for is the command's end");
  assert.equal((await running).code, 0);
});

test("poll: POLLPRI waits for the next end, however often the file is ready before; a failure is one", async (t) => {
  const g = await held(t),
    poller = await talk("poll", control(g, "feature"), "pri");
  assert.equal(await poller.line(), "events in out", "no command has run");
  assert.equal((await ctl(control(g, "main"), "nosuch")).errno, "ENOENT"); // another branch's file
  assert.equal((await ctl(control(g, "feature"), "nosuch")).errno, "ENOENT");
  assert.equal(await poller.line(), "events pri");
  assert.match((await rest(poller)).join("\n"), /^result: error$/m);
});

test("poll: the file of the target ends too when the mount's own file named it", async (t) => {
  const g = await held(t),
    both = [await talk("poll", control(g, "main"), "pri"), await talk("poll", path.join(g.m.mnt, ".merge"), "pri")];
  for (const p of both) assert.equal(await p.line(), "events in out");
  const running = ctl(path.join(g.m.mnt, ".merge"), "feature main");
  await g.stop.reached();
  await g.stop.release();
  for (const p of both) assert.equal(await p.line(), "events pri");
  assert.equal((await running).code, 0);
});

test("poll: through the descriptor that another process writes to", async (t) => {
  const g = await held(t),
    poller = await talk("poll-own", control(g, "main"), "feature");
  assert.equal(await poller.line(), "writing");
  await g.stop.reached();
  poller.say("go");
  assert.equal(await poller.line(), "events");
  await g.stop.release();
  assert.equal(await poller.line(), "events in");
  const a = parseAnswer((await rest(poller)).join("\n"));
  assert.equal(a.result, "merged");
  assert.ok(!a.text.includes("#"), "its own answer alone");
});

test("poll: data files and reports are always ready, and twenty waiters all hear of one end", async (t) => {
  const g = await held(t);
  for (const file of [g.m.tree("main", ".status"), path.join(g.m.mnt, ".stats"), g.m.tree("main", "data", fs.readdirSync(g.m.tree("main", "data"))[0])]) {
    const p = await talk("poll", file, "in");
    assert.equal(await p.line(), "events in out", file);
    p.kill();
  }
  const running = ctl(control(g, "main"), "feature");
  await g.stop.reached();
  const all = await Promise.all(Array.from({ length: 20 }, () => talk("poll", control(g, "main"), "in")));
  for (const p of all) assert.equal(await p.line(), "events");
  all.shift().kill(); // one goes away waiting
  await g.stop.release();
  for (const p of all) assert.equal(await p.line(), "events in");
  assert.equal((await running).code, 0);
});

// --- progress

// A branch whose files are being copied, held before the second data file: { line: what the progress must say of it }.
async function copying(t, engine) {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", engine),
    options = ["nosync"],
    first = await watchedMount(w, g.ds, { options });
  const source = load(g.storage("feature")),
    files = source.fragments.flatMap((f) => f.files).filter((f) => f.base !== undefined),
    others = source.fragments.filter((f) => f.deletion?.base !== undefined).length;
  assert.ok(files.length >= 2, "feature reaches files of main");
  const { changes } = await first.during(() => ctl(control({ m: first }, "feature", ".rehome"), "all mode=copy"));
  const named = changes.findIndex((c) => c.file.endsWith(files[0].path)),
    at = changes.findIndex((c, i) => i > named && (c.call === "copy_file_range" || c.file.endsWith(files[1].path))) + 1;
  assert.ok(named >= 0 && at > 0, `both files' names are among ${changes.map((c) => c.kind)}`);
  await first.unmount();
  await g.reset();

  const prefix = path.join(w.dir, "copy"),
    stop = await barrier(w, "copy"),
    armed = path.join(w.dir, "armed"),
    env = { LD_PRELOAD: await stopperPath(), LANCEFS_STOP_ARMED: armed, LANCEFS_STOP_HOLD: prefix },
    m = await mount(w, g.ds, { options, env });
  fs.writeFileSync(armed, `${at}\n`);
  const sizes = files.map((f) => f.size),
    sum = sizes.reduce((a, b) => a + b, 0);
  // where the file system shares blocks the second file is whole before its first counted call
  const percents = [sizes[0], sizes[0] + sizes[1]].map((b) => `copying files: ${((b * 100) / sum).toFixed(0)}%, 1 of ${files.length + others} files, ${b} of ${sum} bytes`);
  return { w, ...g, m, stop, percents, disarm: () => fs.rmSync(armed) };
}
const isProgress = /^ {2}- copying files: \d+%, \d+ of \d+ files, \d+ of \d+ bytes, \d+\.\d MB\/s, \d+ s left$/;

onEach("a long copy: percent, files, bytes, rate and time left, from the manifest's own numbers", async (t, engine) => {
  const g = await copying(t, engine),
    file = control(g, "feature", ".rehome"),
    running = ctl(file, 'all mode=copy message="a: b"');
  await g.stop.reached();
  const a = await answerOf(file);
  assert.equal(a.result, "running");
  assert.equal(a.command, "all mode=copy message=\\\"a: b\\\"", "as YAML quotes it");
  assert.equal(a.progress.length, 1, a.text);
  assert.match(`  - ${a.progress[0]}`, isProgress);
  assert.ok(g.percents.some((p) => a.progress[0].startsWith(p)), `${a.progress[0]}: ${g.percents}`);
  g.disarm();
  await g.stop.release();
  const r = await running;
  assert.equal(r.code, 0, r.answer.text);
  assert.equal(r.answer.progress, undefined, "an answer has none");
  await checkTip(g, "feature", OVERLAP.feature);
});

test("reading on through one descriptor: nothing twice, then the answer behind ---, then no more", async (t) => {
  const g = await copying(t, ENGINE),
    file = control(g, "feature", ".rehome"),
    running = ctl(file, "all mode=copy");
  await g.stop.reached();
  const reader = await talk("follow", file);
  const part = async () => {
    const lines = [];
    for (let line; (line = await reader.line()) !== "end"; ) lines.push(line);
    return lines;
  };
  const seen = await part();
  assert.equal(seen.filter((l) => isProgress.test(l)).length, 1, seen.join("\n"));
  reader.say("more");
  assert.deepEqual(await part(), [], "it came no further: no line more");
  g.disarm();
  await g.stop.release();
  assert.equal((await running).code, 0);
  reader.say("more");
  const after = await part(),
    cut = after.indexOf("---");
  assert.ok(after.slice(0, cut).every((l) => isProgress.test(l)), after.join("\n"));
  assert.equal(after[cut + 1], "result: rehomed");
  reader.say("more");
  assert.deepEqual(await part(), []);
  reader.kill();
});

test("tail -f shows how far it is, and then the answer", async (t) => {
  const g = await copying(t, ENGINE),
    file = control(g, "feature", ".rehome"),
    running = ctl(file, "all mode=copy");
  await g.stop.reached();
  const tail = converse("tail", ["-n", "+1", "-f", "--", file], { limitMs: LIMIT_MS });
  for (let line; !isProgress.test((line = await tail.line())); ) assert.ok(!line.startsWith("result: rehomed"));
  g.disarm();
  await g.stop.release();
  assert.equal((await running).code, 0);
  while ((await tail.line()) !== "result: rehomed");
  tail.kill();
});

test("Ctrl-C in the middle of a copy: nothing is committed, and the copy of that moment is not left", async (t) => {
  const g = await copying(t, ENGINE),
    before = fs.readdirSync(path.join(g.storage("feature"), "_versions")).sort(),
    writer = converse("bash", ["-c", 'echo "all mode=copy" > "$1"', "bash", control(g, "feature", ".rehome")]);
  await g.stop.reached();
  const ended = writer.kill("SIGINT"),
    poller = await talk("poll", control(g, "feature", ".rehome"), "in");
  assert.equal(await poller.line(), "events");
  g.disarm();
  await g.stop.release();
  await ended;
  assert.equal(await poller.line(), "events in");
  assert.match((await rest(poller)).join("\n"), /^error: "?interrupted/m);
  assert.deepEqual(fs.readdirSync(path.join(g.storage("feature"), "_versions")).sort(), before);
  await checkTip(g, "feature", OVERLAP.feature);
});
