// SPDX-License-Identifier: Apache-2.0
// Rows by strategy (merge-semantics section 4, point 4). Where the winner's row stands already, nothing is left to do;
// where the loser has a replacement row, its update is taken back as a whole commit.

const UPDATES = ["update", "revert", "undo"];

// The loser's commit that has to go for this row; `stuck` when no one commit can be named. A row that the loser only deleted
// leaves nothing to take back, but whether that can be told is `doubtful` behind a compaction or a clean-up.
function loserOf(p, tok, doubt) {
  const source = p.policy.rows === "source-wins",
    [winner, loser] = source ? [p.theirs, p.ours] : [p.ours, p.theirs];
  const how = loser.removed.get(tok);
  if (p.bare.has(tok) && !how) return {}; // its values in a new column are what is given up
  if (!how || !(p.bare.has(tok) || winner.removed.get(tok))) return { stuck: true };
  const named = how.cause && UPDATES.includes(how.cause.op);
  if (how.how === "delete" && !(doubt && named && how.seen.size > 1)) return { doubtful: how.seen.size > 1 };
  return named && (doubt || how.seen.size === 1) ? { cause: how.cause, at: how.at?.number ?? 0 } : { stuck: true };
}

// The state without those commits, the newest first: their rows are gone, those that they took away are back. Undefined where
// something later, which stays, has touched what they made.
function without(state, causes) {
  const rows = new Map(state.rows);
  for (const cause of causes) {
    for (const tok of cause.rows.keys())
      if (!cause.prev.rows.has(tok) && !rows.delete(tok)) return undefined;
    for (const [tok, row] of cause.prev.rows) if (!cause.rows.has(tok)) rows.set(tok, row);
  }
  return { ...state, rows };
}

// Where the winner's compaction cannot be told from an update any more, rows that the loser deleted can count as updated there,
// and come back.
function untold(p, { rows, open }) {
  const [winner, won] = p.policy.rows === "source-wins" ? [p.theirs, p.theirsState] : [p.ours, p.oursState];
  if (!winner.moved && !(winner.compacted && winner.cleaned)) return { rows, open };
  const back = [...p.base.rows.keys()].filter((tok) => won.rows.has(tok) && !rows.has(tok));
  return { rows: new Map([...rows, ...back.map((tok) => [tok, won.rows.get(tok)])]), open: new Set([...open, ...back]) };
}

// { rows, escalated }: what must come of it with the strategy; `stuck` where it may stay a conflict, or must. `otherwise`: what
// comes of it where deletes that a commit of lancefs made together with updates count as updates, too.
export function settle(model, p, three, more, doubt) {
  const otherwise = () => settle(model, p, three, more, true);
  const causes = new Set(),
    at = new Map(); // cause -> the version that holds it on the loser's side
  const newestFirst = () => [...causes].sort((a, b) => at.get(b) - at.get(a));
  const { base, policy, back, oursIsBase } = p,
    plain = { ...policy, rows: undefined };
  let now = p,
    { oursState: ours, theirsState: theirs } = p;
  for (;;) {
    const left = now.sure.map((tok) => loserOf({ ...now, policy }, tok, doubt)),
      next = left.map((x) => x.cause).filter((c) => c && !causes.has(c));
    if (left.some((x) => x.stuck)) return { stuck: true };
    const maybe = [...now.maybe, ...now.sure.filter((_, i) => left[i].doubtful)];
    if (!left.some((x) => x.cause)) return { ...untold(p, now), maybe, escalated: causes.size > 0, causes, otherwise };
    if (!next.length) return { stuck: true };
    for (const x of left) if (x.cause) at.set(x.cause, Math.max(x.at, at.get(x.cause) ?? 0));
    for (const c of next) causes.add(c);
    const loser = without(policy.rows === "source-wins" ? p.oursState : p.theirsState, newestFirst());
    if (!loser) return { stuck: true };
    if (policy.rows === "source-wins") ours = loser;
    else theirs = loser;
    now = three(model, base, ours, theirs, { policy: plain, back, oursIsBase, ...more });
  }
}
