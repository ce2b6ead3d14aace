// SPDX-License-Identifier: Apache-2.0
// Previews: the data set that a merge would give, found by the words of the merge's command.
import assert from "node:assert/strict";
import { load } from "../interop/manifest.mjs";
import { sh } from "./proc.mjs";
import { errnoIn } from "./control.mjs";

// "feature strategy=source-wins" -> tree/target/.preview/feature,strategy=source-wins
export const previewOf = (g, target, line) => {
  const words = line.match(/(?:[^\s"]|"[^"]*")+/g).map((w) => w.replaceAll('"', ""));
  return g.m.tree(target, ".preview", words.map((w, i) => (i ? w : w.replaceAll("/", "%2F"))).join(","));
};

// Why a preview cannot be had: the errno of looking at it; undefined when it is there.
export async function previewError(g, target, line) {
  const r = await sh('cd -- "$1" && ls -R . > /dev/null', [previewOf(g, target, line)], { env: { LC_ALL: "C" } });
  return r.code === 0 ? undefined : (errnoIn(r.stderr) ?? r.stderr);
}

// What two manifests of one merge have in common: all but the commit's own name and time, and random ids.
function lasting(dir) {
  const m = load(dir);
  const drop = (tree, ...keys) => Object.fromEntries(Object.entries(tree).filter(([k]) => !keys.includes(k)));
  const deletion = (d) => drop(d, "id");
  const fragments = (m.tree.fragments ?? []).map((f) => ({ ...f, ...(f.deletion_file && { deletion_file: f.deletion_file.map(deletion) }) }));
  const moving = ["timestamp", "transaction_file", "transaction_section", "index_section"];
  return {
    manifest: drop({ ...m.tree, fragments }, ...moving),
    indexes: m.indices.map((i) => `${i.name} ${i.uuid}`),
    operation: m.transaction?.op,
    properties: m.transaction?.properties,
  };
}

// The preview, which was read before the merge, is the version that the merge then made: manifest by manifest.
export const rememberPreview = (g, target, line) => lasting(previewOf(g, target, line));
export function expectRemembered(g, target, remembered) {
  assert.deepEqual(remembered, lasting(g.m.tree(target)), "the preview's manifest is that of the merge");
}
