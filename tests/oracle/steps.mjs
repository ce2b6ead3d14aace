// SPDX-License-Identifier: Apache-2.0
// The kinds of steps a history is made of: stock commits (stock.mjs), branches, and commands to control files. draw(random,
// model, number) says one concretely, as plain data that can be printed, kept and replayed; it may give undefined when the
// kind makes no sense now.
import { within } from "./lineage.mjs";
import { someBranch, STOCK } from "./stock.mjs";

export const BRANCH_NAMES = ["dev", "exp", "team/x", "team/y"];

const pair = (r, m) => {
  const names = [...m.branches.keys()],
    target = r.pick(names);
  return names.length < 2 ? [] : [target, r.chance(0.02) ? target : r.pick(names.filter((n) => n !== target))];
};
const ownVersions = (m, name) => [...m.branches.get(name).states.keys()].filter((v) => v > Math.max(m.branches.get(name).first, 1));

// Steps that are no stock commit.
export const OTHER = {
  fork: {
    weight: 5,
    draw(r, m) {
      const free = BRANCH_NAMES.filter((b) => !m.branches.has(b));
      if (!free.length) return undefined;
      return { branch: r.pick(free), from: someBranch(r, m), back: r.chance(0.3) ? r.int(1, 3) : 0 };
    },
  },
  drop: {
    weight: 2,
    draw(r, m) {
      const leaves = [...m.branches.values()].filter((b) => b.name !== "main" && !m.children(b).length);
      return leaves.length ? { branch: r.pick(leaves).name, again: r.chance(0.5) } : undefined;
    },
  },
  merge: {
    weight: 30,
    draw(r, m) {
      if (m.branches.size < 2) return undefined;
      if (m.lastMerge && r.chance(0.2)) {
        const { target, source } = m.lastMerge; // the same again, or the other way round
        if (m.branches.has(target) && m.branches.has(source))
          return r.chance(0.3) ? { target, source, ...options(r) } : { target: source, source: target, ...options(r) };
      }
      let target, source;
      // Most merges should have something to do: look a few times.
      for (let tries = r.int(1, 6); tries > 0; tries--) {
        [target, source] = pair(r, m);
        if (!within(m.tip(source).vector, m.tip(target).vector)) break;
      }
      return { target, source, back: r.chance(0.1) ? r.int(1, 3) : 0, ...options(r) };
    },
  },
  pick: {
    weight: 8,
    draw(r, m) {
      const [target, source] = pair(r, m);
      if (!source) return undefined;
      const versions = ownVersions(m, source).slice(-6);
      if (!versions.length) return undefined;
      const first = r.pick(versions),
        last = r.chance(0.35) ? Math.min(first + r.int(1, 3), versions.at(-1)) : first;
      return { target, source, first, last, ...options(r, "pick") };
    },
  },
  revert: {
    weight: 6,
    draw(r, m) {
      const target = someBranch(r, m),
        versions = ownVersions(m, target).slice(-5);
      return versions.length ? { target, version: r.pick(versions), ...options(r, "revert") } : undefined;
    },
  },
  undo: {
    weight: 4,
    draw(r, m) {
      // Mostly where there is a merge to undo.
      const merged = [...m.branches.values()].filter((b) => [...b.states.values()].some((s) => s.op === "merge"));
      if (!merged.length || r.chance(0.1)) return { target: someBranch(r, m), steps: 1, ...options(r, "undo") };
      return { target: r.pick(merged).name, steps: r.chance(0.1) ? 2 : 1, ...options(r, "undo") };
    },
  },
};

const STRATEGIES = { "source-wins": 1, "dest-wins": 1 };
// The options that each verb takes.
function options(r, verb = "merge") {
  const places = r.weighted({ "": 10, "mode=link": 3, "mode=copy": 2, "mode=graft": 1 }),
    words = [r.weighted({ "": 12, "dry-run": 1 })];
  if (["merge", "pick"].includes(verb)) words.push(places);
  if (verb === "merge") words.push(r.weighted({ "": 10, "ff=never": 3, "ff=only": 1 }));
  if (verb !== "undo" && r.chance(0.25)) words.push(...strategies(r));
  return { options: words.filter(Boolean), ...(verb === "merge" && { root: r.chance(0.15) }), tree: r.chance(0.15) };
}
// One for all, or by class, or both; the class goes first.
function strategies(r) {
  const words = r.chance(0.7) ? [`strategy=${r.weighted({ ...STRATEGIES, fail: 0.2 })}`] : [];
  for (const unit of ["rows", "config", "columns", "schema"])
    if (r.chance(words.length ? 0.1 : 0.4)) words.push(`${unit}=${r.weighted({ ...STRATEGIES, fail: 0.5 })}`);
  return words;
}
// { rows, config, columns, schema }: what the words of a command say about each class.
export function policyOf(words) {
  const said = Object.fromEntries(words.filter((w) => w.includes("=")).map((w) => w.split("=")));
  return Object.fromEntries(["rows", "config", "columns", "schema"].map((c) => [c, said[c] ?? said.strategy]));
}

// What a history is made with: drawn from its seed, so that some have columns that come and go, some stable row ids.
const FEATURES = { schema: 0.3, stable: 0.2, series: 0 }; // series: only where it is asked for
// LANCEFS_FEATURES=schema,stable says the same for all histories ("plain": none of them).
export function traitsOf(r, forced = process.env.LANCEFS_FEATURES) {
  const drawn = Object.fromEntries(Object.entries(FEATURES).map(([name, share]) => [name, r.chance(share)]));
  if (!forced) return drawn;
  const said = forced.split(",").filter((x) => x !== "plain");
  for (const name of said) if (!(name in FEATURES)) throw new Error(`no such feature: ${name}`);
  return Object.fromEntries(Object.keys(FEATURES).map((name) => [name, said.includes(name)]));
}

// The next step of a history. The first ones make a few fragments, then branches.
export function drawStep(r, m, number, traits, more = {}) {
  const kinds = { ...STOCK, ...OTHER, ...more };
  const weights = Object.fromEntries(
    Object.entries(kinds).filter(([, k]) => !k.feature || traits[k.feature]).map(([name, k]) => [name, k.weight]),
  );
  for (let tries = 0; ; tries++) {
    const first = number <= 2 ? "append" : m.branches.size < 3 && number < 7 && r.chance(0.7) ? "fork" : undefined;
    const kind = first ?? r.weighted(weights);
    const step = kinds[kind].draw(r, m, number);
    if (step) return { kind, ...step };
    if (tries > 100) throw new Error("no step can be drawn");
  }
}
