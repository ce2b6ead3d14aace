// SPDX-License-Identifier: Apache-2.0
// -o hooks=DIR: what the programs are given, that their no is one, that the mount answers them, and which are not run.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { tip } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { barrier, hooksIn } from "../harness/hooks.mjs";
import { isMounted, launch, mount } from "../harness/mount.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { OVERLAP, expectRows, rows } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkStorage, checkTip, control, merges, onEach } from "../harness/tip.mjs";
import { branchOfFive } from "../harness/verbs.mjs";
import { difference, generate, probe, snapshot, workspace } from "../harness/workspace.mjs";

const ENGINE = "lance12";
// overlap_deletes with a directory of hooks, mounted
async function hooked(t, engine, scripts, { options = [] } = {}) {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", engine),
    hooks = hooksIn(w);
  for (const [name, script] of Object.entries(scripts)) hooks.set(name, typeof script === "string" ? script : await script(w));
  return { w, engine, ...g, hooks, m: await mount(w, g.ds, { options: [hooks.option, ...options] }) };
}
const numbers = (text, words) => Object.fromEntries([...text.matchAll(/[-+~](\d+)/g)].map((m, i) => [words[i], Number(m[1])]));
// The command must be refused by a hook, and change nothing.
async function denied(g, target, file, line) {
  const before = snapshot(g.root),
    r = await ctl(control(g, target, file), line);
  assert.equal(r.errno, "EPERM", `${line} > ${file}: ${r.errno} ${r.answer.text}`);
  assert.equal(r.answer.result, "refused", r.answer.text);
  assert.deepEqual(difference(before, snapshot(g.root)), [], "a hook's no changes nothing");
  return r.answer;
}

onEach("the plan, the environment, and a yes whose words are in the answer", async (t, engine) => {
  const g = await hooked(t, engine, {
    "pre-merge": (w) => `env > '${w.dir}/env'; pwd > '${w.dir}/pwd'; ls /proc/self/fd > '${w.dir}/fds'; echo looks good; echo 'key: value' >&2`,
  });
  const dry = (await ctl(control(g, "main"), 'feature dry-run message="week 12" property.ticket=7')).answer;
  assert.deepEqual(g.hooks.asked("pre-merge"), [], "a dry run asks nobody");
  const a = await merges(g, "main", 'feature message="week 12" property.ticket=7');
  assert.deepEqual(a.hook, ["looks good", '"key: value"'], a.text);
  const [asked, ...more] = g.hooks.asked("pre-merge"),
    preview = path.join(g.m.tree("main"), ".preview", dry.source);
  assert.deepEqual(more, []);
  assert.deepEqual(asked, {
    verb: "merge",
    command: 'feature message="week 12" property.ticket=7',
    operation: "merge",
    target: { branch: "main", version: Number(dry.target.split("@")[1]) },
    version: Number(dry.target.split("@")[1]) + 1,
    source: dry.source,
    base: dry.base,
    result: dry["would-be"],
    fragments: numbers(dry.fragments, ["added", "removed", "changed"]),
    rows: numbers(dry.rows, ["added", "removed"]),
    notes: dry.notes,
    message: "week 12",
    properties: { ticket: "7" },
    hook: "pre-merge",
    mount: g.m.mnt,
    tree: g.m.tree("main"),
    preview,
  });
  const env = Object.fromEntries(
    fs.readFileSync(path.join(g.w.dir, "env"), "utf8").trim().split("\n").map((l) => [l.split("=")[0], l.slice(l.indexOf("=") + 1)]),
  );
  delete env.PWD; // the shell's own
  delete env._;
  delete env.SHLVL;
  delete env.OLDPWD;
  assert.deepEqual(env, {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    LANCEFS_HOOK: "pre-merge",
    LANCEFS_MOUNT: g.m.mnt,
    LANCEFS_TARGET: "main",
    LANCEFS_TREE: g.m.tree("main"),
    LANCEFS_PREVIEW: preview,
  });
  assert.equal(fs.readFileSync(path.join(g.w.dir, "pwd"), "utf8"), "/\n");
  const fds = fs.readFileSync(path.join(g.w.dir, "fds"), "utf8").trim().split("\n").map(Number);
  assert.ok(fds.every((fd) => fd <= 3), `nothing of the daemon is open (3 is the listing itself): ${fds}`);
  await checkTip(g, "main", OVERLAP.union);
});

test("a strategy is part of the preview's name", async (t) => {
  const g = await hooked(t, ENGINE, { "pre-merge": "exit 1" });
  for (const [words, name] of [
    ["strategy=source-wins", "feature@6,strategy=source-wins"],
    ["rows=dest-wins fieldids=strict mode=copy", "feature@6,rows=dest-wins,fieldids=strict"],
  ]) {
    await denied(g, "main", ".merge", `feature ${words}`);
    assert.equal(path.basename(g.hooks.asked("pre-merge").at(-1).preview), name);
  }
});

onEach("a no: EPERM, its words in the answer, nothing changed; every verb that moves a tip asks", async (t, engine) => {
  const five = await branchOfFive(t, engine),
    hooks = hooksIn(five.w);
  await five.op("main", "add", { rows: rows(200, 2) });
  await merges(five, "main", "f@5"); // something to undo, and something to rehome
  await five.m.unmount();
  const m = await mount(five.w, five.ds, { options: [hooks.option] }),
    g = { ...five, m };
  hooks.set("pre-merge", "echo 'no merges on Fridays'; exit 3");
  const at = tip(g.storage("main"));
  for (const [file, target, line, operation, steps] of [
    [".merge", "main", "f", "merge"],
    [".cherry-pick", "main", "f@6", "cherry-pick"],
    [".cherry-pick", "main", "f@6..7 squash", "cherry-pick"],
    [".cherry-pick", "main", "f@6..7", "cherry-pick", 2],
    [".merge", "main", "f replay", "merge", 2],
    [".revert", "main", `${at - 1}`, "revert"],
    [".undo", "main", "steps=1", "undo"],
    [".rehome", "main", "all", "rehome"],
  ]) {
    const a = await denied(g, target, file, line);
    assert.match(a.reason, /^"?pre-merge said no \(exit status 3\)/, `${file} ${line}: ${a.text}`);
    assert.deepEqual(a.hook, ["no merges on Fridays"], a.text);
    assert.ok(a.target.startsWith("main@"), a.text);
    const asked = hooks.asked("pre-merge").at(-1);
    assert.equal(asked.operation, operation);
    assert.equal(asked.verb, file.slice(1));
    assert.deepEqual(asked.target, { branch: "main", version: at });
    assert.equal(asked.steps?.length, steps, `${file} ${line}: steps`);
  }
  const rebase = await denied(g, "f", ".rebase", "main");
  assert.deepEqual(rebase.hook, ["no merges on Fridays"], rebase.text);
  assert.equal(hooks.asked("pre-merge").at(-1).verb, "rebase");
  assert.equal(hooks.asked("pre-merge").length, 9, "each was asked once");
  const r = await ctl(path.join(g.m.mnt, ".merge"), "f main");
  assert.equal(r.errno, "EPERM", r.answer.text);
  // what moves no tip asks nobody
  assert.equal((await ctl(control(g, "main", ".tag"), "v1")).code, 0);
  assert.equal((await ctl(control(g, "main", ".branch"), "other")).code, 0);
  assert.equal((await ctl(path.join(g.m.mnt, ".gc"), "dry-run")).code, 0);
  assert.equal(hooks.asked("pre-merge").length, 10);
  // and a yes lets all of it through
  hooks.set("pre-merge", "");
  assert.equal((await ctl(control(g, "main"), "f replay")).code, 0);
  assert.equal(hooks.asked("pre-merge").length, 11, "a series is asked about once");
  assert.equal((await ctl(control(g, "main", ".rehome"), "all")).code, 0);
});

for (const options of [[], ["max_threads=1"]])
  test(`a hook reads the mount while the command waits${options.length ? `, ${options}` : ""}`, async (t) => {
    const g = await hooked(
      t,
      ENGINE,
      {
        "pre-merge": (w) => `set -e
          cd "$LANCEFS_TREE"; cat .status .log .merge > '${w.dir}/reports'; cat "$LANCEFS_MOUNT/.fsck" > /dev/null
          ls -lR "$LANCEFS_MOUNT/tree" > /dev/null; cp -r "$LANCEFS_MOUNT/tree/feature" '${w.dir}/copy.lance'
          echo hooked > .tag; cat .tag`,
      },
      { options },
    );
    const a = await merges(g, "main", "feature");
    assert.ok(a.hook.some((l) => l.includes("result: tagged") || l.includes("hooked")), a.text);
    const seen = fs.readFileSync(path.join(g.w.dir, "reports"), "utf8");
    assert.match(seen, /^result: running$/m, "the control file says that it runs");
    assert.match(seen, /^version\t\d+$/m);
    expectRows(await stock[ENGINE].read(path.join(g.w.dir, "copy.lance")), OVERLAP.feature, "the hook's copy of feature");
    assert.ok(fs.readdirSync(path.join(g.m.mnt, "tags")).includes("hooked"), "a command of the hook's own");
    await checkTip(g, "main", OVERLAP.union);
  });

test("one thread (-s): the mount still answers the hook", async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", ENGINE),
    hooks = hooksIn(w),
    mnt = path.join(w.dir, "mnt");
  fs.mkdirSync(mnt);
  hooks.set("pre-merge", `cat "$LANCEFS_TREE/.status" > '${w.dir}/seen'`);
  w.defer(() => run("fusermount3", ["-uz", mnt]));
  const r = await launch(w, ["-s", "-o", hooks.option, g.ds, mnt]);
  assert.equal(r.code, 0, r.stderr);
  assert.equal((await ctl(path.join(mnt, "tree/main/.merge"), "feature")).code, 0);
  assert.match(fs.readFileSync(path.join(w.dir, "seen"), "utf8"), /^version\t/m);
  await must(run("fusermount3", ["-u", mnt]));
});

for (const words of ["feature", "feature replay"])
  onEach(`the tip moves while the hook is asked about ${words}: planned again, asked again`, async (t, engine) => {
    let stop;
    const g = await hooked(t, engine, {
      "pre-merge": async (w) => {
        stop = await barrier(w, "first");
        return `[ -e '${w.dir}/once' ] || { : > '${w.dir}/once'; ${stop.script}; }`;
      },
    });
    const before = tip(g.storage("main")),
      running = ctl(control(g, "main"), words);
    await stop.reached();
    await stock[engine].op(g.ds, "main", "add", { rows: rows(9000, 2) });
    await stop.release();
    const r = await running;
    assert.equal(r.code, 0, r.answer.text);
    const asked = g.hooks.asked("pre-merge"),
      steps = asked[0].steps?.length ?? 1;
    assert.equal(steps > 1, words.endsWith("replay"));
    assert.equal(Number(r.answer.version), before + 1 + steps);
    assert.deepEqual(asked.map((p) => [p.target.version, p.steps?.length ?? 1]), [[before, steps], [before + 1, steps]]);
    await checkTip(g, "main", [...OVERLAP.union, ...rows(9000, 2)]);
  });

test("post-merge is told what came of it, also of a commit that failed; of what pre-merge refused it hears nothing", async (t) => {
  const g = await hooked(t, ENGINE, { "pre-merge": "", "post-merge": "echo told" });
  await must(run("mkdir", [g.m.tree("gone")]));
  const a = await merges(g, "main", "feature");
  assert.deepEqual(a.hook, ["told"]);
  const [told] = g.hooks.asked("post-merge");
  assert.equal(told.hook, "post-merge");
  assert.equal(told.result, "merged");
  assert.equal(told.version, Number(a.version));
  assert.equal(told.transaction, a.transaction);
  assert.equal(told.preview, undefined);
  assert.ok(a.text.includes(told.answer), "the whole answer");
  assert.deepEqual(told.fragments, numbers(a.fragments, ["added", "removed", "changed"]));
  // nothing to do, and a failure before anybody was asked
  await merges(g, "main", "feature", "up-to-date");
  assert.equal((await ctl(control(g, "main"), "nosuch")).errno, "ENOENT");
  assert.equal(g.hooks.asked("post-merge").length, 1);
  // the branch goes while pre-merge looks: the commit fails, and that is told
  g.hooks.set("pre-merge", `rmdir '${g.m.tree("gone")}'`);
  const r = await ctl(path.join(g.m.mnt, ".merge"), "feature gone");
  assert.notEqual(r.code, 0);
  assert.equal(g.hooks.asked("post-merge").at(-1).result, "error", r.answer.text);
  assert.equal(g.hooks.asked("post-merge").at(-1).version, undefined);
  // a no
  g.hooks.set("pre-merge", "exit 1");
  await ctl(control(g, "feature"), "main");
  assert.equal(g.hooks.asked("post-merge").length, 2);
  // post-merge's own failure changes nothing
  g.hooks.set("pre-merge", "");
  g.hooks.set("post-merge", "exit 9");
  const last = await ctl(control(g, "feature"), "main");
  assert.equal(last.code, 0);
  assert.match(last.answer.hook.join(), /post-merge failed: exit status 9/);
});

test("a hook that does not end is killed with all it started, and counts as a no", async (t) => {
  const g = await hooked(t, ENGINE, {
    "pre-merge": (w) => `echo began; sh -c 'trap "" TERM; echo $$ > "${w.dir}/pid"; while :; do sleep 1000; done' & wait`,
  }, { options: ["hooks_timeout=1"] });
  const a = await denied(g, "main", ".merge", "feature");
  assert.match(a.reason, /did not end within 1 seconds/);
  assert.deepEqual(a.hook, ["began"]);
  const pid = fs.readFileSync(path.join(g.w.dir, "pid"), "utf8").trim();
  assert.equal((await probe("wait-exit", pid)).code, 0, "its child is gone");
});

test("Ctrl-C while a hook is asked: EINTR, the hook is ended, nothing is committed", async (t) => {
  let stop;
  const g = await hooked(t, ENGINE, {
    "pre-merge": async (w) => {
      stop = await barrier(w, "ctrl-c");
      return `echo $$ > '${w.dir}/pid'; ${stop.script}`;
    },
  });
  const before = snapshot(g.root),
    writer = converse("bash", ["-c", 'echo feature > "$1"', "bash", control(g, "main")]);
  await stop.reached();
  await writer.kill("SIGINT");
  const pid = fs.readFileSync(path.join(g.w.dir, "pid"), "utf8").trim();
  assert.equal((await probe("wait-exit", pid)).code, 0);
  const { answer } = await ctl(control(g, "main"), "feature dry-run");
  assert.equal(answer.result, "dry-run");
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("much output is cut, not waited for; a hook that reads nothing is fine", async (t) => {
  const g = await hooked(t, ENGINE, {});
  fs.writeFileSync(g.hooks.file("pre-merge"), "#!/bin/sh\nyes word | head -c 1000000; printf 'a\\0b'\n", { mode: 0o755 });
  const a = await merges(g, "main", "feature");
  assert.ok(a.hook.length > 10_000 && a.hook.length <= 65536 / 5 + 1, `${a.hook.length} lines`);
  await checkStorage(g, "main", OVERLAP.union);
});

test("hooks= that is not there, or that others can write to: the mount is not made", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", ENGINE),
    hooks = hooksIn(w),
    mnt = path.join(w.dir, "mnt"),
    other = path.join(w.dir, "other");
  fs.mkdirSync(mnt);
  fs.mkdirSync(other);
  async function refused(named, why, option = hooks.option) {
    const r = await launch(w, ["-o", option, g.ds, mnt]);
    assert.equal(r.code, 1, r.stderr);
    assert.equal(isMounted(mnt), false);
    assert.ok(r.stderr.includes(named) && why.test(r.stderr), r.stderr);
  }
  await refused("/nowhere", /No such file/, `hooks=${w.dir}/nowhere`);
  fs.chmodSync(hooks.dir, 0o777);
  await refused(hooks.dir, /others can write/);
  fs.chmodSync(hooks.dir, 0o1777); // the sticky bit does not make it good: anybody may add a hook
  await refused(hooks.dir, /others can write/);
  fs.chmodSync(hooks.dir, 0o755);
  fs.chmodSync(w.dir, 0o777);
  await refused(w.dir, /others can write/);
  fs.chmodSync(w.dir, 0o700);
  for (const name of ["pre-merge", "post-merge"]) {
    hooks.set(name, "");
    fs.chmodSync(hooks.file(name), 0o775);
    await refused(hooks.file(name), /others can write/);
    fs.chmodSync(hooks.file(name), 0o644);
    await refused(hooks.file(name), /not executable/);
    fs.renameSync(hooks.file(name), path.join(other, name));
    fs.symlinkSync(path.join(other, name), hooks.file(name));
    await refused(hooks.file(name), /link/);
    fs.unlinkSync(hooks.file(name));
  }
  if (process.getuid() !== 0) return t.diagnostic("files of another user: only root can make them");
  hooks.set("pre-merge", "");
  fs.chownSync(hooks.file("pre-merge"), 65534, 65534);
  await refused(hooks.file("pre-merge"), /another user/);
  fs.chownSync(hooks.file("pre-merge"), 0, 0);
  fs.chownSync(hooks.dir, 65534, 65534);
  await refused(hooks.dir, /another user/);
});

test("what becomes unsafe later is a no, and so is a directory that was replaced by a link", async (t) => {
  const g = await hooked(t, ENGINE, { "pre-merge": "" }),
    pre = g.hooks.file("pre-merge");
  const no = async (why) => assert.match((await denied(g, "main", ".merge", "feature")).reason, why);
  fs.chmodSync(pre, 0o757);
  await no(/others can write/);
  fs.chmodSync(pre, 0o755);
  fs.chmodSync(g.hooks.dir, 0o775);
  await no(/others can write/);
  fs.chmodSync(g.hooks.dir, 0o755);
  fs.renameSync(g.hooks.dir, `${g.hooks.dir}.real`);
  fs.symlinkSync(`${g.hooks.dir}.real`, g.hooks.dir);
  await no(/hooks are not run/);
  fs.unlinkSync(g.hooks.dir);
  await no(/No such file/); // without its directory nobody can be asked: that is no yes
  fs.renameSync(`${g.hooks.dir}.real`, g.hooks.dir);
  assert.deepEqual(g.hooks.asked("pre-merge"), [], "none of these ran it");
  fs.unlinkSync(pre);
  await merges(g, "main", "feature"); // no such hook in a good directory: nobody wants to be asked
});
