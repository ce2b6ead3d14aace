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

// The row that this one is by its id: updates by stock keep ids, as far as somebody saw that they did.
const rootOf = (model, tok) => {
  while (model.keptId.has(tok)) tok = model.origin.get(tok);
  return tok;
};

// Stable row ids: each row has its own; what was there keeps its id, as the same copy, as one that an update made of it, or
// as the one that it was before an update that was taken back. (Of a version inside an operation that takes two nobody read the
// ids.)
export function checkIds(model, ours, state, where) {
  assert.equal(new Set(state.ids.values()).size, state.ids.size, `row ids are distinct: ${where}`);
  const before = new Map([...(ours.ids ?? [])].map(([tok, id]) => [rootOf(model, tok), id]));
  for (const [tok, id] of state.ids) {
    const was = ours.ids?.get(tok) ?? before.get(rootOf(model, tok));
    if (was !== undefined) assert.equal(id, was, `row id of ${tok}: ${where}`);
  }
}
