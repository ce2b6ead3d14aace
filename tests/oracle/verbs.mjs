// SPDX-License-Identifier: Apache-2.0
// Commands as a history gives them: for each verb the control file, the words, and what the model says must come of it;
// undefined when a replay with fewer steps leaves no such command. stateOf(branch, back) is a version that is still there.

const named = (step, name) => `${step.tree ? "tree/" : ""}${name}`;
const at = (step, state) => (state === state.line.tip ? "" : `@${state.number}`);

export const VERBS = {
  merge(m, step, ours, policy, stateOf) {
    if (!m.branches.has(step.source)) return undefined;
    const theirs = stateOf(step.source, step.back);
    m.lastMerge = { target: step.target, source: step.source };
    return { file: ".merge", words: named(step, step.source) + at(step, theirs), p: m.merge(ours, theirs, policy) };
  },
  pick(m, step, ours, policy) {
    const line = m.branches.get(step.source),
      { first, last } = step;
    if (!line || !line.states.has(last) || first <= Math.max(line.first, line.oldest ?? 0, 1)) return undefined;
    const words = first < last ? `${named(step, step.source)}@${first}..${last} squash` : `${named(step, step.source)}@${first}`;
    return { file: ".cherry-pick", words, p: m.pick(ours, line, first, last, policy) };
  },
  revert(m, step, ours, policy) {
    const { line } = ours,
      { version } = step;
    if (!line.states.has(version) || version <= Math.max(line.first, line.oldest ?? 0, 1)) return undefined;
    return { file: ".revert", words: `${version}`, p: m.revert(ours, version, policy) };
  },
  undo(m, step, ours, policy) {
    return { file: ".undo", words: `steps=${step.steps}`, p: m.undo(ours, Number(step.steps), policy) };
  },
};
