// SPDX-License-Identifier: Apache-2.0
// C70: the very same merge, by many at once, in two mounts of one data set. It is made once; nobody's clean-up takes what
// is another's.
import assert from "node:assert/strict";
import { tip, versions } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { checkManifest } from "../harness/invariants.mjs";
import { mount } from "../harness/mount.mjs";
import { OVERLAP, span } from "../harness/rows.mjs";
import { checkTip, onEach } from "../harness/tip.mjs";
import { generate, workspace } from "../harness/workspace.mjs";

const EACH = 8;

onEach("C70 sixteen shells merge the same branch into main at once, in two mounts", async (t, engine) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", engine),
    from = tip(g.ds),
    mounts = [await mount(w, g.ds), await mount(w, g.ds)];
  const results = await Promise.all(
    span(1, 2 * EACH).map((i) => ctl(`${mounts[i % 2].mnt}/tree/main/.merge`, "feature")),
  );
  // what was answered last is what a control file shows, so only the errno is this shell's own
  for (const r of results) assert.ok(r.code === 0 || r.errno === "EAGAIN", `${r.stderr} ${r.answer.text}`);
  assert.ok(results.some((r) => r.code === 0), "one came through");
  assert.equal(tip(g.ds), from + 1, "one version came of it");
  assert.deepEqual(versions(g.ds), span(1, from + 1));
  checkManifest(g.ds); // all files are there, nothing half made is left
  for (const m of mounts) await checkTip({ ...g, m }, "main", OVERLAP.union);
  const ids = OVERLAP.union.map((r) => r.id);
  assert.equal(ids.length, 270);
  t.diagnostic(`${results.filter((r) => r.code === 0).length} of ${results.length} had success`);
  for (const m of mounts) await m.unmount();
});
