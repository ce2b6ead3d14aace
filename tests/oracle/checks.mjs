// SPDX-License-Identifier: Apache-2.0
// What is looked at in the storage itself: maps, lineage, row ids.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { maps } from "../interop/configure.mjs";
import { pickOf } from "./lineage.mjs";
import { mapKey } from "./stock.mjs";

// All keys of the three maps of a branch directory as one Map; what lancefs keeps for itself is no part of it.
export function mapsOf(dir) {
  const all = Object.entries(maps(dir)).flatMap(([map, values]) => Object.entries(values).map(([k, v]) => [map, k, v]));
  return new Map(all.filter(([, key]) => !key.startsWith("lancefs.")).map(([map, key, value]) => [mapKey(map, key), value]));
}
const sorted = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
export const expectMaps = (dir, expected, where) => assert.deepEqual(sorted(mapsOf(dir)), sorted(expected), where);

// The uuid of a branch's line, from its ref file.
export function uuidOf(ds, branch) {
  const ref = JSON.parse(fs.readFileSync(path.join(ds, "_refs/branches", `${encodeURIComponent(branch)}.json`)));
  return ref.identifier.version_mapping.at(-1)[1];
}

// The vector and the picks that stand in the manifest.
export function expectLineage(dir, state, model, where) {
  const { table } = maps(dir),
    list = (text) => (text ?? "").split(",").filter(Boolean).sort();
  const uuid = (id) => model.lines.get(id).uuid;
  const vector = [...state.carried].map(([id, n]) => `${uuid(id)}:${n}`);
  assert.deepEqual(list(table["lancefs.vector"]), vector.sort(), `vector: ${where}`);
  const picked = [...model.lines.values()].flatMap((line) =>
    [...line.states.keys()].filter((v) => state.picked.has(pickOf(line, v))).map((v) => `${line.uuid}:${v}`),
  );
  assert.deepEqual(list(table["lancefs.picked"]), picked.sort(), `picks: ${where}`);
}

// The place of a row in its fragment: what of its address a merge keeps.
export const addressOf = (id) => id % 2 ** 32;

// Stable row ids: each row has its own; rows that stayed keep theirs, and one that came as the update of a row of ours
// has that one's, if the update kept the id where it was made. (Of a version inside an operation that takes two nobody read
// the ids.)
export function checkIds(model, ours, theirs, state, where) {
  assert.equal(new Set(state.ids.values()).size, state.ids.size, `row ids are distinct: ${where}`);
  for (const [tok, id] of state.ids) {
    if (ours.ids?.has(tok)) assert.equal(id, ours.ids.get(tok), `row id of ${tok}: ${where}`);
    else {
      const from = ours.ids && model.ancestorIn(tok, ours);
      if (from && theirs.ids?.get(tok) === ours.ids.get(from)) assert.equal(id, ours.ids.get(from), `row id of ${tok}: ${where}`);
    }
  }
}
