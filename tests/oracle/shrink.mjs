// SPDX-License-Identifier: Apache-2.0
// Leaves out steps of a history that fails for as long as it still fails in the same way.
import { run } from "../harness/proc.mjs";
import { runHistory } from "./history.mjs";

// The kind of a failure: its first line without the names and numbers that differ from run to run.
export const kindOf = (error) => (error?.message ?? "").split("\n")[0].replace(/\d+/g, "N").slice(0, 60);

export async function shrink({ seed, engine, traits, steps }, engines, say) {
  const attempt = async (list) => {
    const r = await runHistory({ seed, engine, traits, engines, steps: list });
    if (r.error) await run("rm", ["-rf", "--one-file-system", r.dir]);
    return r;
  };
  const first = await attempt(steps);
  if (!first.error) return undefined;
  const kind = kindOf(first.error);
  let best = first.steps;
  for (let size = best.length >> 1; size >= 1; size >>= 1)
    for (let at = best.length - size; at >= 0; at = Math.min(at, best.length) - size) {
      const fewer = best.filter((_, i) => i < at || i >= at + size);
      const r = await attempt(fewer);
      if (!r.error || kindOf(r.error) !== kind) continue;
      best = r.steps;
      say(`${best.length} steps: ${r.error.message.split("\n")[0]}`);
    }
  return runHistory({ seed, engine, traits, engines, steps: best, keep: true });
}
