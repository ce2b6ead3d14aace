// SPDX-License-Identifier: Apache-2.0
// Commands that make several versions, one for each commit that they take over: a merge with replay, a range of picks. All is
// planned before the first version is written, so a conflict anywhere leaves everything as it was.
import assert from "node:assert/strict";
import { judge } from "./judge.mjs";
import { join } from "./lineage.mjs";
import { OTHER } from "./steps.mjs";
import { changesNothing } from "./units.mjs";

// As a single command is drawn; dry runs and fast-forwards only are looked at there.
const drawn = (kind) => (r, m, number) => {
  const step = OTHER[kind].draw(r, m, number);
  return step && { ...step, back: 0, options: step.options.filter((o) => !["dry-run", "ff=only"].includes(o)) };
};
export const SERIES = {
  replay: { feature: "series", weight: 12, draw: drawn("merge") },
  picks: {
    feature: "series",
    weight: 8,
    draw(r, m, number) {
      const step = drawn("pick")(r, m, number),
        last = step && Math.min(step.first + r.int(1, 3), m.tip(step.source).number);
      return step && last > step.first ? { ...step, last } : undefined;
    },
  },
};

// What the program calls a version: a branch that is gone has only its line's name.
const labelOf = (m, { line, number }) => `${m.branches.get(line.name) === line ? line.name : line.uuid}@${number}`;

// { file, words, op, parts: [{ label, state, predict(ours) }] }; undefined when a replay with fewer steps leaves no such command.
const PLANS = {
  replay(m, step, ours, policy) {
    if (!m.branches.has(step.source)) return undefined;
    const source = m.tip(step.source),
      states = [];
    for (let s = source; s && s.number > (ours.vector.get(s.line.id) ?? 0); s = s.prev) if (s.op !== "fork") states.unshift(s);
    const part = (state) => ({ label: labelOf(m, state), state, predict: (now) => m.merge(now, state, policy) });
    return { file: ".merge", op: "merge", words: `${step.source} replay`, parts: (states.length ? states : [source]).map(part) };
  },
  picks(m, step, ours, policy) {
    const line = m.branches.get(step.source),
      { first, last } = step;
    if (!line?.states.has(last) || first <= Math.max(line.first, line.oldest ?? 0, 1)) return undefined;
    const states = Array.from({ length: last - first + 1 }, (_, i) => line.states.get(first + i)),
      part = (state) => ({ label: labelOf(m, state), state, predict: (now) => m.pick(now, line, state.number, state.number, policy) });
    return { file: ".cherry-pick", op: "pick", words: `${step.source}@${first}..${last}`, parts: states.map(part) };
  },
};
export const planOf = (m, step, ours, policy) => PLANS[step.kind](m, step, ours, policy);

const quoted = (r) => `exit ${r.code}, ${r.errno ?? r.stderr.trim()}\n${r.answer.text.replace(/^#.*\n/gm, "").trim()}`;
const sure = (p) => (p.settled && !p.settled.stuck ? p.units : [...p.sure, ...p.units]);

// The lines of the versions that were made: label -> { result, version, notes }.
function madeBy(r) {
  const out = new Map();
  for (const line of [r.answer.steps ?? []].flat()) {
    const [, label, result, version] = /^"?(\S+) (\S+) version (\d+),/.exec(line) ?? assert.fail(`"${line}" tells of no version`);
    const notes = r.answer.notes.filter((n) => n.replace(/^"/, "").startsWith(`${label}: `));
    out.set(label, { result, version: Number(version), text: notes.join("\n") });
  }
  return out;
}

// A step without a version of its own: held already, or nothing changed by it. What it brought is held from then on; a pick
// that changes nothing is not recorded.
function skipped(p, now, { label, state }, op, r) {
  if (p.result !== "up-to-date") {
    if (sure(p).length) assert.fail(`${label} was skipped where the model sees conflicts in ${sure(p).join(" ")}: ${quoted(r)}`);
    if (!changesNothing(p, now)) assert.fail(`${label} was skipped, but it changes something: ${quoted(r)}`);
  }
  return { ...now, vector: op === "merge" ? join(now.vector, state.vector) : now.vector, picked: (op === "merge" && p.picked) || now.picked };
}

// A command that stopped, at which of its steps? What comes before must go through, as far as it can be told without
// having been written. Gives the outcome; the model is left as it was.
function stopped(m, r, plan, ours, context) {
  const at = Number(/, (\d+) of \d+$/.exec(r.answer.step ?? "")?.[1] ?? 0) - 1,
    { line } = ours;
  if (at < 0) {
    if (r.errno === "EOPNOTSUPP" && /cannot be replayed by itself/.test(r.answer.text) && plan.parts.some((x) => x.state.op === "compact"))
      return "stopped: a compaction among them";
    if (r.errno === "ENODATA" && plan.parts.some((x) => x.state.cleaned)) return "stopped: history cleaned away";
    assert.fail(`${plan.words} stopped, at none of its steps: ${quoted(r)}`);
  }
  let now = ours,
    outcome = "stopped: behind a step that leaves rows open";
  for (const [i, part] of plan.parts.entries()) {
    const p = context.know(part.predict(now));
    if (i === at) {
      ({ outcome } = judge(r, p, { ...context, ours: now }));
      break;
    }
    if (p.result !== "up-to-date" && (p.settled || p.open.size || p.theirs.replaced || p.ours.replaced)) break;
    if (p.result === "up-to-date") continue;
    if (sure(p).length) assert.fail(`${part.label} goes through where the model sees conflicts in ${sure(p).join(" ")}: ${quoted(r)}`);
    const { kept } = p.theirsState;
    now = m.written(line.name, plan.op, p, p.rows, now.number + 1, {});
    p.theirsState.kept = kept;
  }
  for (const v of [...line.states.keys()]) if (v > ours.number) line.states.delete(v);
  line.tip = ours;
  return outcome;
}

// Is this answer right? `written(now, p, made, last)` looks at each version that was made, and puts it into the model.
export async function judgeSeries(m, r, plan, ours, { written, ...context }) {
  if (r.code !== 0) return stopped(m, r, plan, ours, context);
  const made = madeBy(r);
  let now = ours,
    version = ours.number,
    forward = true;
  for (const part of plan.parts) {
    const p = context.know(part.predict(now)),
      mine = made.get(part.label);
    if (!mine) {
      now = skipped(p, now, part, plan.op, r);
      continue;
    }
    if (p.result === "up-to-date") assert.fail(`${part.label} is held already: ${quoted(r)}`);
    const follows = forward && now !== ours; // nothing but the source's own commits came before
    p.oursIsBase ||= follows;
    judge({ code: 0, stderr: "", answer: mine }, p, { ...context, ours: now });
    forward &&= mine.result === "fast-forward";
    assert.equal(mine.version, ++version, `the versions follow each other: ${quoted(r)}`);
    await written(now, p, mine, version === ours.number + made.size);
    now = m.tip(ours.line.name);
    made.delete(part.label);
    made.set(`${part.label} done`, mine);
  }
  assert.equal(version - ours.number, made.size, `each version is that of a step: ${quoted(r)}`);
  return made.size ? "merged" : "up-to-date";
}
