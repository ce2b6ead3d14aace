// SPDX-License-Identifier: Apache-2.0
// The daemon is killed before every call by which mkdir, rmdir, mv, .branch, a rebase and its undoing, and the verbs of tags
// change the file system. Whatever the moment: the next mount or fsck.lancefs -y finds the old state or the new one, the check
// finds nothing lost, stock Lance reads every branch, and a second try comes through.
//
// Every state is repaired and checked. What lies outside _lancefs/ after the repair is mostly the same as after a kill
// a call earlier: stock Lance reads it once. The second try is made on each different tree, _lancefs/ included.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { json, refFile, settled, tagFile } from "../harness/names.mjs";
import { mount } from "../harness/mount.mjs";
import { must, run, sh } from "../harness/proc.mjs";
import { expectRows, rows, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { tip } from "../interop/manifest.mjs";
import { ENGINES, generate, workspace } from "../harness/workspace.mjs";
import { FSCK, keyOf, outside, putBack, some, statesOfCheck, statesOfCommand, treeOf } from "./states.mjs";

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
const tipOfFeature = (g) => json(refFile(g, "idle")).parentVersion;
const tagged = (g) => stock.lance12.op(g.ds, "feature", "tag", { name: "t", version: tipOfFeature(g) });

// How many states of a verb get a second try, evenly chosen; LANCEFS_STOPS=0: each one.
const TRIES = Number(process.env.LANCEFS_STOPS ?? 12) || Infinity;

// before, after: the branches. tags(g): the tags before and after. repeats: once done it can be given again.
const VERBS = {
  mkdir: { script: "mkdir tree/new", after: { ...CHAIN, new: MAIN } },
  ".branch of a branch with an index": {
    prepare: (g) => stock.lance12.op(g.ds, "feature", "index", { column: "id" }),
    script: "echo exp/sub/x/y > tree/feature/.branch",
    after: { ...CHAIN, "exp/sub/x/y": FEATURE },
  },
  rmdir: { script: "rmdir tree/old", after: WITHOUT_OLD },
  mv: {
    prepare: tagged,
    dirs: "echo deeper/x > tree/old/.branch",
    script: "mv -T tree/feature tree/deeper/renamed",
    before: { ...CHAIN, "deeper/x": OLD },
    after: { ...OTHERS, "deeper/renamed": FEATURE, "deeper/x": OLD },
    tags: (g) => [{ t: tipOfFeature(g) }, { t: tipOfFeature(g) }],
    taggedBranch: ["feature", "deeper/renamed"],
  },
  ".rebase": {
    prepare: (g) => stock.lance12.op(g.ds, "old", "delete", { where: "id = 400" }).then(() => stock.lance12.op(g.ds, "old", "add", { rows: rows(400, 1, "o") })),
    script: "echo main > tree/old/.rebase",
    after: REBASED,
    isNew: isRebased,
    repeats: true,
  },
  ".undo of a rebase": {
    dirs: "echo main > tree/old/.rebase",
    script: "echo steps=1 > tree/old/.undo",
    before: REBASED,
    after: CHAIN,
    isNew: (g) => !isRebased(g),
  },
  "ln -s in tags": { script: "ln -s ../tree/feature/.versions/2 tags/new", tags: () => [{}, { new: 2 }] },
  "rm in tags": { prepare: tagged, script: "rm tags/t", tags: (g) => [{ t: tipOfFeature(g) }, {}] },
  "mv in tags": { prepare: tagged, script: "mv tags/t tags/u", tags: (g) => [{ t: tipOfFeature(g) }, { u: tipOfFeature(g) }] },
  ".tag that moves one": {
    prepare: tagged,
    script: "echo 't from=2 move' > tree/feature/.tag",
    tags: (g) => [{ t: tipOfFeature(g) }, { t: 2 }],
    repeats: true,
  },
};

const shell = (m, script) => sh(`cd "$MNT" && ${script}`, [], { env: { MNT: m.mnt, LC_ALL: "C" } });
const names = (m) => must(shell(m, "find tree -name data -printf '%h\\n' | sed s,tree/,, | sort")).then((r) => r.stdout.trim().split("\n"));
const refs = (g) => ["main", ...fs.readdirSync(path.join(g.ds, "_refs/branches")).filter((f) => f.endsWith(".json")).map((f) => decodeURIComponent(f.replace(/\.json$/, "")))].sort();
const tagsOf = (g) => {
  const dir = path.join(g.ds, "_refs/tags"),
    list = fs.existsSync(dir) ? fs.readdirSync(dir).filter((f) => f.endsWith(".json")) : [];
  return Object.fromEntries(list.map((f) => [f.replace(/\.json$/, ""), json(path.join(dir, f)).version]));
};
const sorted = (object) => Object.keys(object).sort();

// Takes what the stop left back to a whole state: by the program of the check, or by a mount. The check finds nothing then.
async function repair(w, g, byMount) {
  if (byMount) await (await mount(w, g.ds)).unmount();
  const { code, stdout } = byMount ? { code: 1 } : await run(FSCK, ["-y", g.ds]);
  assert.ok([0, 1].includes(code), `fsck -y: ${stdout}`);
  if (code === 0) return;
  const check = await run(FSCK, ["-n", g.ds]);
  assert.equal(check.code, 0, check.stdout);
}

// The old state or the new one, nothing between, nothing lost. True for the new one.
async function checkWhole(g, tree, verb, tags, seen, engine) {
  const states = [verb.before ?? CHAIN, verb.after ?? CHAIN];
  settled(g);
  const is = (i) => refs(g).join() === sorted(states[i]).join() && (!tags || JSON.stringify(tagsOf(g)) === JSON.stringify(tags[i])),
    isNew = verb.isNew ? verb.isNew(g) : is(1);
  assert.ok(is(isNew ? 1 : 0), `the old state or the new one: ${refs(g)}, ${JSON.stringify(tagsOf(g))}`);
  if (verb.taggedBranch) assert.equal(json(tagFile(g, "t")).branch, verb.taggedBranch[isNew ? 1 : 0]);
  const key = keyOf(tree, outside);
  if (seen.has(key)) return isNew;
  seen.add(key);
  const state = states[isNew ? 1 : 0];
  for (const [name, expected] of Object.entries(state))
    expectRows(await stock[engine].read(g.ds, name), expected, `${name} in the storage, read by ${engine}`);
  assert.deepEqual((await stock[engine].op(g.ds, "main", "branches")).value, sorted(state).filter((x) => x !== "main"));
  if (tags) assert.deepEqual(Object.entries((await stock[engine].op(g.ds, "main", "tags")).value), Object.entries(tags[isNew ? 1 : 0]));
  return isNew;
}

async function tryAgain(w, g, verb, tags, isNew, engine) {
  const before = verb.before ?? CHAIN,
    after = verb.after ?? CHAIN,
    m = await mount(w, g.ds);
  assert.deepEqual(await names(m), sorted(isNew ? after : before), "the names that the mount shows");
  const again = await shell(m, verb.script);
  assert.equal(again.code === 0, !isNew || !!verb.repeats, `the second try: ${again.stderr}\n${m.log()}`);
  assert.deepEqual(await names(m), sorted(after), "after the second try");
  await m.unmount();
  settled(g);
  if (tags) assert.deepEqual(tagsOf(g), tags[1]);
  const changed = sorted(after).find((x) => !(x in before)) ?? (verb.isNew ? "old" : "feature");
  await stock[engine].op(g.ds, changed, "add", { rows: rows(900, 1) });
  expectRows(await stock[engine].read(g.ds, changed), [...after[changed], ...rows(900, 1)], `${changed} after the second try`);
  const left = await run(FSCK, [g.ds]);
  assert.equal(left.code, 0, left.stdout);
}

// All of that for every one of these states; how many were before, after, and tried again.
async function checkAll(w, g, verb, tags, states, seen) {
  const found = { before: 0, after: 0 },
    different = new Map();
  for (const [i, state] of states.entries())
    try {
      putBack(g, state);
      await repair(w, g, i % 8 === 7);
      const tree = treeOf(g.ds),
        isNew = await checkWhole(g, tree, verb, tags, seen, ENGINES[i % 2]);
      isNew ? found.after++ : found.before++;
      different.set(keyOf(tree), { ...state, isNew });
    } catch (e) {
      e.message = `stopped ${state.where}: ${e.message}`;
      throw e;
    }
  const tried = some([...different.values()], TRIES);
  for (const [i, state] of tried.entries()) {
    putBack(g, state);
    await tryAgain(w, g, verb, tags, state.isNew, ENGINES[i % 2]).catch((e) => {
      e.message = `stopped ${state.where}: ${e.message}`;
      throw e;
    });
  }
  return { ...found, tried: tried.length, different: different.size };
}

for (const [name, verb] of Object.entries(VERBS))
  test(`killed before each call that changes the file system: ${name}`, { timeout: 3_600_000 }, async (t) => {
    const w = workspace(t),
      g = await generate(w, "chain", "lance12"),
      seen = new Set();
    await verb.prepare?.(g);
    const tags = verb.tags?.(g);
    const { made, states } = await statesOfCommand(w, g, {
      before: async (m) => (verb.dirs ? must(shell(m, verb.dirs)) : undefined),
      act: (m) => must(shell(m, verb.script)),
    });
    const found = await checkAll(w, g, verb, tags, states, seen);
    t.diagnostic(`${made.length} calls, ${states.length} states, ${found.before} before it counted, ${found.after} after; ${found.tried} of ${found.different} tried again; read ${seen.size} times`);
    assert.ok(found.before >= 1 && found.after >= 1, "the stops hit it");
    if (!["mv", ".rebase", ".undo of a rebase", "rmdir"].includes(name)) return;
    // the repair itself is killed, too
    for (const state of some(states.filter((s) => s.tree.has("_lancefs/names")), 3)) {
      putBack(g, state);
      const repairs = await statesOfCheck(w, g, ["-y"]);
      const all = repairs.states.map((s) => ({ ...s, where: `${state.where}, and in the repair ${s.where}` }));
      const again = await checkAll(w, g, verb, tags, all, seen);
      t.diagnostic(`repair of a stop ${state.where}: ${repairs.made.length} calls, ${all.length} states, ${again.tried} tried again`);
    }
  });
