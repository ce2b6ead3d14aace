// SPDX-License-Identifier: Apache-2.0
// The daemon is killed in the middle of mkdir, rmdir, mv, a rebase and its undoing, and the making of a tag. Whatever the
// moment: the next mount (or fsck.lancefs -y, every other time) finds the old state or the new one, stock Lance reads every
// branch of it, nothing is lost, and a second try comes through.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { json, refFile, settled } from "../harness/names.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run, sh } from "../harness/proc.mjs";
import { expectRows, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { tip } from "../interop/manifest.mjs";
import { ENGINES, generate, LANCEFS, stopperPath, workspace } from "../harness/workspace.mjs";
import { calls } from "./stops.mjs";

// chain
const FEATURE = [...without(rows(0, 10), 1), ...rows(100, 2, "f")],
  SUB = [...without(FEATURE, 100), ...rows(200, 2, "s")],
  MAIN = [...rows(0, 10), ...rows(10, 1, "m")],
  OLD = [...rows(0, 5), ...rows(400, 1, "o")],
  CHAIN = { main: MAIN, feature: FEATURE, "exp/sub": SUB, "exp/sub/deep": [...without(SUB, 6), ...rows(300, 2, "d")], old: OLD, idle: FEATURE };
const { feature: _, ...OTHERS } = CHAIN,
  { old: _old, ...WITHOUT_OLD } = CHAIN,
  REBASED = { ...CHAIN, old: [...MAIN, ...rows(400, 1, "o")] };
const isRebased = (g) => json(refFile(g, "old")).parentVersion === tip(g.ds);

// How many stops of a verb are made, evenly chosen; LANCEFS_STOPS=0: before each call.
const STOPS = Number(process.env.LANCEFS_STOPS ?? 40);

const VERBS = {
  mkdir: { script: "mkdir tree/new", after: { ...CHAIN, new: MAIN } },
  ".branch of a branch with an index": {
    prepare: (g) => stock.lance12.op(g.ds, "feature", "index", { column: "id" }),
    script: "echo exp/sub/x/y > tree/feature/.branch",
    after: { ...CHAIN, "exp/sub/x/y": FEATURE },
  },
  rmdir: { script: "rmdir tree/old", after: WITHOUT_OLD },
  mv: {
    prepare: (g) => stock.lance12.op(g.ds, "feature", "tag", { name: "t", version: json(refFile(g, "idle")).parentVersion }),
    script: "mv -T tree/feature tree/deeper/renamed",
    dirs: "echo deeper/x > tree/old/.branch",
    extra: { "deeper/x": OLD },
    after: { ...OTHERS, "deeper/renamed": FEATURE },
    tagged: ["feature", "deeper/renamed"],
  },
  ".rebase": {
    prepare: (g) => stock.lance12.op(g.ds, "old", "delete", { where: "id = 400" }).then(() => stock.lance12.op(g.ds, "old", "add", { rows: rows(400, 1, "o") })),
    script: "echo main > tree/old/.rebase",
    after: REBASED,
    isNew: isRebased,
  },
  ".undo of a rebase": {
    dirs: "echo main > tree/old/.rebase",
    script: "echo steps=1 > tree/old/.undo",
    before: REBASED,
    after: CHAIN,
    isNew: (g) => !isRebased(g),
    once: true, // it has no merge to undo then
  },
  "ln -s in tags": { script: "ln -s ../tree/feature/.versions/2 tags/new", after: CHAIN, tag: "new" },
};

const shell = (m, script) => sh(`cd "$MNT" && ${script}`, [], { env: { MNT: m.mnt, LC_ALL: "C" } });

// The verb with a stop before its n-th call (0: none), by a daemon of its own.
async function stopped(w, g, verb, n) {
  await g.reset();
  await verb.prepare?.(g);
  const at = path.join(w.dir, `stop-${n}`),
    counts = `${at}.counts`,
    env = { LD_PRELOAD: await stopperPath(), LANCEFS_STOP_ARMED: `${at}.armed`, LANCEFS_STOP_COUNT: counts };
  const m = await mount(w, g.ds, { env });
  if (verb.dirs) await must(shell(m, verb.dirs));
  fs.writeFileSync(`${at}.armed`, `${n}\n`);
  const r = await shell(m, verb.script);
  await (n === 0 ? m.unmount() : m.kill());
  return { code: r.code, made: calls(g, counts) };
}

const names = (m) => must(shell(m, "find tree -name data -printf '%h\\n' | sed s,tree/,, | sort")).then((r) => r.stdout.trim().split("\n"));

const fsck = (g, ...words) => run(path.join(path.dirname(LANCEFS), "fsck.lancefs"), [...words, g.ds]);

async function recovers(w, g, verb, where, engine, byCheck) {
  const before = { ...(verb.before ?? CHAIN), ...verb.extra },
    after = { ...verb.after, ...verb.extra },
    check = byCheck && (await fsck(g, "-y"));
  if (check) assert.ok([0, 1].includes(check.code), `${where}: fsck -y: ${check.stdout}`);
  const m = await mount(w, g.ds);
  try {
    g.m = m;
    const found = await names(m),
      isNew = verb.isNew ? verb.isNew(g) : verb.tag ? fs.existsSync(path.join(g.ds, "_refs/tags", `${verb.tag}.json`)) : found.join() === Object.keys(after).sort().join();
    const state = isNew ? after : before;
    assert.deepEqual(found, Object.keys(state).sort(), "the old state or the new one");
    settled(g);
    for (const [name, expected] of Object.entries(state))
      expectRows(await stock[engine].read(g.ds, name), expected, `${name} in the storage, read by ${engine}`);
    assert.deepEqual((await stock[engine].op(g.ds, "main", "branches")).value, Object.keys(state).filter((x) => x !== "main").sort());
    if (verb.tagged) assert.equal(json(path.join(g.ds, "_refs/tags/t.json")).branch, verb.tagged[isNew ? 1 : 0]);
    const again = await shell(m, verb.script);
    assert.equal(again.code === 0, !isNew || (!!verb.isNew && !verb.once), `the second try: ${again.stderr}`);
    assert.deepEqual(await names(m), Object.keys(after).sort(), "after the second try");
    settled(g);
    const changed = Object.keys(after).find((x) => !(x in before)) ?? (verb.isNew ? "old" : "feature");
    await stock[engine].op(g.ds, changed, "add", { rows: rows(900, 1) });
    await m.unmount();
    if (verb.isNew) expectRows(await stock[engine].read(g.ds, "old"), [...after.old, ...rows(900, 1)], "after the second try");
    const left = await fsck(g);
    assert.equal(left.code, 0, left.stdout);
    return isNew;
  } catch (e) {
    e.message = `${where}: ${e.message}\n${m.log()}`;
    throw e;
  }
}

// A stop before a flush leaves what a stop before the next call leaves. Of many calls of one kind the first and the last.
function stops(made) {
  const kinds = new Map();
  made.forEach((call, i) => {
    if (/^f(data)?sync /.test(call)) return;
    const kind = call.replace(/ \(\d+\)$/, "").replace(/names\/[^/ ]+/, "names/#");
    kinds.set(kind, [...(kinds.get(kind) ?? []), i + 1]);
  });
  const all = [...new Set([...kinds.values()].flatMap((list) => [list[0], list.at(-1)]))].sort((a, b) => a - b);
  if (!STOPS || all.length <= STOPS) return all;
  return Array.from({ length: STOPS }, (_, i) => all[Math.round((i * (all.length - 1)) / (STOPS - 1))]);
}

for (const [name, verb] of Object.entries(VERBS))
  test(`a stop before each call that changes the file system: ${name}`, { timeout: 1_200_000 }, async (t) => {
    const w = workspace(t),
      g = await generate(w, "chain", "lance12"),
      moments = { before: 0, after: 0 };
    const { code, made } = await stopped(w, g, verb, 0);
    assert.equal(code, 0, "with no stop it comes through");
    const chosen = stops(made);
    for (const [i, n] of chosen.entries()) {
      const where = `stopped before call ${n}, ${made[n - 1]}`,
        r = await stopped(w, g, verb, n);
      assert.notEqual(r.code, 0, `${where}: it never came to it`);
      (await recovers(w, g, verb, where, ENGINES[i % 2], i % 4 > 1)) ? moments.after++ : moments.before++;
    }
    t.diagnostic(`${chosen.length} stops, ${moments.before} before it counted, ${moments.after} after, of ${made.length} calls`);
    assert.ok(moments.before >= 1 && moments.before + moments.after >= 3, "the stops hit it");
  });
