// SPDX-License-Identifier: Apache-2.0
// A commit of Lance's UpdateConfig operation on a branch directory, as other bindings of Lance make it (the one for Node
// cannot): keys of the config, the table metadata and the schema metadata. A value of null removes its key.
//   configure(dir, { config: { a: "1" }, table: { b: null }, schema: { c: "2" } })
//   maps(dir)      the newest version's maps, in the same shape
import { commitByHand, newest, numberOf, withNumber } from "./commit.mjs";
import { message, parse } from "./wire.mjs";

// Each map's field in a manifest and in UpdateConfig.
const MAPS = { config: [16, 6], table: [19, 7], schema: [5, 8] };
const UPDATE_CONFIG = 110,
  FLAGS = 10,
  HAS_CONFIG = 8n;

const entry = ([key, value]) => message([1, key], ...(value === null ? [] : [[2, value]]));
const keyOf = (bytes) => Buffer.from(parse(bytes).find(([f]) => f === 1)[2]).toString();

function withEntries(manifest, field, values) {
  const kept = manifest.filter(([f, , v]) => f !== field || !(keyOf(v) in values));
  const set = Object.entries(values).filter(([, v]) => v !== null);
  return [...kept, ...set.map((e) => [field, 2, entry(e)])];
}

export function maps(dir) {
  const { manifest } = newest(dir);
  const text = (bytes) => (bytes === undefined ? "" : Buffer.from(bytes).toString());
  const pair = (bytes) => [1, 2].map((field) => text(parse(bytes).find(([f]) => f === field)?.[2]));
  const all = (field) => Object.fromEntries(manifest.filter(([f]) => f === field).map(([, , bytes]) => pair(bytes)));
  return Object.fromEntries(Object.entries(MAPS).map(([map, [field]]) => [map, all(field)]));
}

export function configure(dir, changes) {
  const updates = Object.entries(changes).map(([map, values]) => [
    MAPS[map][1],
    message(...Object.entries(values).map((e) => [1, entry(e)])),
  ]);
  commitByHand(
    dir,
    () => [UPDATE_CONFIG, message(...updates)],
    (manifest) => {
      for (const [map, values] of Object.entries(changes)) manifest = withEntries(manifest, MAPS[map][0], values);
      const flags = numberOf(manifest, FLAGS) & ~HAS_CONFIG;
      return withNumber(manifest, FLAGS, manifest.some(([f]) => f === MAPS.config[0]) ? flags | HAS_CONFIG : flags);
    },
  );
}
