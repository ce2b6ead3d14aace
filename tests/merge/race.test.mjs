// SPDX-License-Identifier: Apache-2.0
// Merges that race: with stock writers, with each other in one mount, with each other in two mounts. Every commit that
// was acknowledged is there once, versions have no gap.
import assert from "node:assert/strict";
import { versions } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { checkManifest } from "../harness/invariants.mjs";
import { mount } from "../harness/mount.mjs";
import { rows, span, without } from "../harness/rows.mjs";
import { startStock, stock } from "../harness/stock.mjs";
import { checkStorage, checkTip, control, onEach } from "../harness/tip.mjs";
import { ENGINES, place, workspace } from "../harness/workspace.mjs";
import path from "node:path";

const BRANCHES = ["b0", "b1", "b2", "b3", "b4"],
  TABLE = rows(0, 100);

// A table of 100 rows and five branches: bK deletes row K and appends row 1000+K. main has moved since.
async function fan(w, engine) {
  const g = place(path.join(w.dir, "t.lance")),
    s = stock[engine];
  await s.create(g.ds, TABLE);
  for (const [k, name] of BRANCHES.entries()) {
    await s.op(g.ds, "main", "fork", { name });
    await s.op(g.ds, name, "delete", { where: `id = ${k}` });
    await s.op(g.ds, name, "add", { rows: rows(1000 + k, 1, "b") });
  }
  await s.op(g.ds, "main", "delete", { where: "id = 99" });
  return g;
}
const MERGED = [...without(TABLE, 99, span(0, 4)), ...BRANCHES.flatMap((_, k) => rows(1000 + k, 1, "b"))];

// Appends one row a commit until it is told to stop; acknowledged ids count, refused ones are tried no more.
function writer(engine, ds, first) {
  const client = startStock(engine),
    acked = [];
  let stopped = false,
    started;
  const ready = new Promise((resolve) => (started = resolve));
  const done = (async () => {
    for (let id = first; !stopped; id++) {
      const ok = await client.op(ds, "main", "add", { rows: rows(id, 1, "w") }).then(
        () => true,
        (e) => {
          if (!/conflict|retr/i.test(e.message)) throw e;
          return false;
        },
      );
      if (ok) acked.push(id);
      started();
    }
  })();
  return {
    ready,
    stop: async () => {
      stopped = true;
      await done;
      client.stop();
      return acked;
    },
  };
}

// EAGAIN says that others kept winning: the caller's turn to try again.
async function mergeUntilDone(file, line) {
  for (let tries = 0; tries < 20; tries++) {
    const r = await ctl(file, line);
    if (r.code === 0) return r.answer;
    assert.equal(r.errno, "EAGAIN", `${line}: ${r.stderr} ${r.answer.text}`);
  }
  return assert.fail(`${line}: EAGAIN 20 times`);
}
const gapless = (ds) => assert.deepEqual(versions(ds), span(1, versions(ds).length), "versions have no gap");

onEach("stock writers of both engines append to main while five branches are merged into it", async (t, engine) => {
  const w = workspace(t),
    g = await fan(w, engine);
  g.m = await mount(w, g.ds);
  const writers = ENGINES.map((e, i) => writer(e, g.ds, 10_000 * (i + 1)));
  await Promise.all(writers.map((x) => x.ready));
  for (const b of BRANCHES) assert.equal((await mergeUntilDone(control(g, "main"), b)).result, "merged");
  const acked = (await Promise.all(writers.map((x) => x.stop()))).flat();
  assert.ok(acked.length >= 2, "the writers wrote");
  const all = [...MERGED, ...acked.flatMap((id) => rows(id, 1, "w"))];
  gapless(g.ds);
  await checkTip(g, "main", all);
  await g.m.unmount();
  t.diagnostic(`${acked.length} appends raced with ${BRANCHES.length} merges`);
});

onEach("five merges into one target at once, by five shells", async (t, engine) => {
  const w = workspace(t),
    g = await fan(w, engine);
  g.m = await mount(w, g.ds);
  await Promise.all(BRANCHES.map((b) => mergeUntilDone(control(g, "main"), b)));
  gapless(g.ds);
  checkManifest(g.ds);
  await checkTip(g, "main", MERGED);
});

onEach("two mounts of one data set merge into one target at once", async (t, engine) => {
  const w = workspace(t),
    g = await fan(w, engine);
  const mounts = [await mount(w, g.ds), await mount(w, g.ds)];
  const file = (i) => path.join(mounts[i % 2].mnt, "tree/main/.merge");
  await Promise.all(BRANCHES.map((b, i) => mergeUntilDone(file(i), b)));
  gapless(g.ds);
  checkManifest(g.ds);
  for (const m of mounts) await checkTip({ ...g, m }, "main", MERGED);
});

onEach("one source into four targets at once", async (t, engine) => {
  const w = workspace(t),
    g = await fan(w, engine);
  g.m = await mount(w, g.ds);
  await Promise.all(BRANCHES.slice(1).map((b) => mergeUntilDone(control(g, b), "b0")));
  for (const [i, b] of BRANCHES.entries())
    if (i > 0) await checkStorage(g, b, [...without(TABLE, 0, i), ...rows(1000, 1, "b"), ...rows(1000 + i, 1, "b")]);
});

onEach("a merge and a stock delete on the same fragment at once: both are there", async (t, engine) => {
  const w = workspace(t),
    g = await fan(w, engine);
  g.m = await mount(w, g.ds);
  const client = startStock(engine);
  await Promise.all([
    ...BRANCHES.map((b) => mergeUntilDone(control(g, "main"), b)),
    ...span(50, 55).map((id) => client.op(g.ds, "main", "delete", { where: `id = ${id}` })),
  ]);
  client.stop();
  gapless(g.ds);
  await checkTip(g, "main", without(MERGED, span(50, 55)));
});
