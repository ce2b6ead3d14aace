// SPDX-License-Identifier: Apache-2.0
// Eight writers of both engines, on the storage and on two mounts of it, and two mergers, all on one branch at once, for
// LANCEFS_SOAK_SECONDS (60). Every row that was told to be written is there once, and no other; versions have no gap, and
// no two of them are one commit.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { manifests, tip, versions } from "../interop/manifest.mjs";
import { ctl } from "../harness/control.mjs";
import { mount } from "../harness/mount.mjs";
import { LIMIT_MS } from "../harness/proc.mjs";
import { OVERLAP, span } from "../harness/rows.mjs";
import { startStock, stock } from "../harness/stock.mjs";
import { ENGINES, generate, workspace } from "../harness/workspace.mjs";

const SECONDS = Number(process.env.LANCEFS_SOAK_SECONDS ?? 60),
  WRITERS = 8;
// What stock Lance says when it lost its race too often; the commit may or may not have been made.
const LOST = /conflict|retr|Commit|no answer|ended \(SIGKILL\)/i; // a writer that keeps losing may be given up on: its rows are there or not

test(`a soak of ${SECONDS} s: ${WRITERS} writers and 2 mergers on one branch, checked id by id`, { timeout: SECONDS * 1000 + 5 * LIMIT_MS }, async (t) => {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", "lance12"),
    from = tip(g.ds),
    mounts = [await mount(w, g.ds), await mount(w, g.ds)];
  await stock.lance12.op(g.ds, "main", "fork", { name: "other" });
  const clients = [...ENGINES, ...ENGINES].map(startStock);
  w.defer(async () => clients.forEach((c) => c.stop()));
  const places = [[mounts[0].table("main"), "main"], [mounts[1].table("main"), "main"], [g.ds, "main"]],
    until = Date.now() + SECONDS * 1000,
    present = new Set(OVERLAP.main.map((r) => r.id)),
    unsure = new Set(),
    counts = { added: 0, deleted: 0, lost: 0, merged: 0, mergesLost: 0 };
  let next = 10_000;

  // One commit: add three rows, or now and then delete one of one's own.
  async function write(i) {
    const client = clients[i % clients.length],
      place = places[i % places.length],
      mine = [];
    for (let k = 0; Date.now() < until; k++) {
      const gone = k % 4 === 3 ? mine.shift() : undefined,
        lot = gone === undefined ? [0, 1, 2].map(() => ({ id: next, v: `w${i}`, n: next++ })) : [];
      try {
        if (gone === undefined) await client.op(...place, "add", { rows: lot });
        else await client.op(...place, "delete", { where: `id = ${gone}` });
      } catch (e) {
        assert.match(e.message, LOST, `writer ${i}`);
        for (const id of gone === undefined ? lot.map((r) => r.id) : [gone]) unsure.add(id);
        counts.lost++;
        continue;
      }
      lot.forEach((r) => (present.add(r.id), mine.push(r.id)));
      present.delete(gone);
      counts[gone === undefined ? "added" : "deleted"] += gone === undefined ? 3 : 1;
    }
  }
  // Rows on a branch of its own, and then all of that branch into main.
  async function merge(i, branch) {
    const waiting = branch === "feature" ? [...OVERLAP.feature.filter((r) => r.id >= 1000).map((r) => r.id)] : [];
    for (let more = true; more; ) {
      more = Date.now() < until;
      const row = { id: next, v: branch, n: next++ };
      await clients[i].op(g.ds, branch, "add", { rows: [row] });
      waiting.push(row.id);
      const r = await ctl(path.join(mounts[i].mnt, "tree/main/.merge"), branch);
      if (r.code !== 0) {
        assert.equal(r.errno, "EAGAIN", r.answer.text);
        counts.mergesLost++;
        more = true; // the last one must come through
        continue;
      }
      waiting.splice(0).forEach((id) => present.add(id));
      counts.merged++;
    }
  }
  await Promise.all([...span(0, WRITERS - 1).map(write), merge(0, "feature"), merge(1, "other")]);
  t.diagnostic(`${JSON.stringify(counts)}, ${tip(g.ds) - from} versions`);

  assert.deepEqual(versions(g.ds), span(1, tip(g.ds)), "no gap");
  const uuids = manifests(g.ds).slice(from).map(({ name }) => {
    const bytes = fs.readFileSync(path.join(g.ds, "_versions", name)).toString("latin1");
    return /\d+-([0-9a-f-]{36})\.txn/.exec(bytes)?.[1] ?? assert.fail(`${name} names its transaction`);
  });
  assert.equal(new Set(uuids).size, uuids.length, "each version is a commit of its own");
  // what feature had deleted in main came with its merges
  const deleted = OVERLAP.main.map((r) => r.id).filter((id) => !OVERLAP.union.some((r) => r.id === id));
  const expected = [...present].filter((id) => !unsure.has(id) && !deleted.includes(id)).sort((a, b) => a - b);
  for (const engine of ENGINES)
    for (const place of places) {
      const ids = (await stock[engine].read(...place)).rows.map(([id]) => id);
      assert.deepEqual(ids.filter((id) => !unsure.has(id)), expected, `${place} read by ${engine}`);
      assert.equal(new Set(ids).size, ids.length, "no row twice");
    }
  assert.ok(counts.merged >= 2 && counts.added > 0, "both wrote");
  for (const m of mounts) await m.unmount();
});
