// SPDX-License-Identifier: Apache-2.0
// What a side of a pair does: the stock commits that do it, and what that means for plain rows, columns, keys and indexes.
// together() puts two of them on one state by arithmetic; it knows nothing of how lancefs does it.
import { configure } from "../interop/configure.mjs";
import { load } from "../interop/manifest.mjs";
import { pick } from "../harness/verbs.mjs";

const row = (id, tag) => ({ id, v: `${tag}${id}`, n: id, w: id * 10 });
export const lot = (from, n, tag) => Array.from({ length: n }, (_, i) => row(from + i, tag));

// The common ground: two fragments of ten rows and an index. `fields` are as fieldsOf() shows them.
export const BASE = {
  rows: lot(0, 20, "r"),
  fields: [
    ["id", "double", true, {}],
    ["v", "string", true, {}],
    ["n", "double", true, {}],
    ["w", "double", true, {}],
  ],
  config: {},
  metadata: {},
  indexes: ["id_idx"],
};
// What a ground of its own has more (restore takes it away again).
export const LATER = lot(50, 3, "later");

// { label, run(g, branch): the commits; and what they mean: more (rows), gone (ids), moved ([ids, values]), add, drop, alter,
// index, replaced (rows), config, metadata }
const one = (label, operation, args, effect = {}) => ({
  label,
  run: (g, branch) => g.op(branch, operation, args),
  ...effect,
});

export const append = (from, tag) => one(`append ${from}`, "add", { rows: lot(from, 2, tag) }, { more: lot(from, 2, tag) });
export const remove = (...ids) => one(`delete ${ids}`, "delete", { where: `id IN (${ids})` }, { gone: ids });
export const update = (id, values) => one(`update ${id} ${JSON.stringify(values)}`, "update", { where: `id = ${id}`, values }, { moved: [[id], values] });
// Updates `id` (or nothing, when there is no such row) and inserts `inserted`.
export function upsert(id, tag, inserted) {
  const values = { v: `${tag}!` },
    rows = [{ ...row(id, "r"), ...values }, ...(inserted === undefined ? [] : lot(inserted, 1, tag))];
  return one(`merge_insert ${id} ${tag} ${inserted}`, "mergeInsert", { on: "id", rows }, { moved: [[id], values], more: rows.slice(1) });
}
export const insert = (id, tag) => one(`merge_insert ${id} ${tag}`, "mergeInsert", { on: "id", rows: lot(id, 1, tag) }, { more: lot(id, 1, tag) });

export const addColumn = (name, sql = "n + 1", type = "double", value = (r) => r.n + 1) =>
  one(`add ${name} ${sql}`, "addColumn", { name, sql }, { add: { name, type, nullable: true, value } });
export const addNotNull = (name) =>
  one(`add ${name} not null`, "addColumn", { name, sql: "5" }, { add: { name, type: "int64", nullable: false, value: () => 5 } });
// The column of a third branch, picked: the same files on both sides.
export const pickColumn = (name) => ({
  ...addColumn(name),
  label: `pick ${name}`,
  shared: true,
  run: async (g, branch) => pick(g, branch, await g.third(name)),
});
export const dropColumn = (name) => one(`drop ${name}`, "dropColumns", { names: [name] }, { drop: name });
const altered = (label, args, alter) => one(`alter ${label}`, "alter", args, { alter: { name: args.path, ...alter } });
export const rename = (path, to) => altered(`${path} to ${to}`, { path, rename: to }, { rename: to });
export const retype = (path) => altered(`${path} float`, { path, type: "Float32" }, { type: "float" });
export const nullable = (path, is) => altered(`${path} nullable ${is}`, { path, nullable: is }, { nullable: is });
export const fieldKey = (path, key, value) =>
  one(`alter ${path} ${key}=${value}`, "fieldMetadata", { path, metadata: { [key]: value } }, { alter: { name: path, metadata: { [key]: value } } });

export const compact = () => one("compaction", "optimize", undefined, { compacts: true });
export const index = (column, name = `${column}_idx`) => one(`index ${name} on ${column}`, "index", { column, name }, { index: { name, column } });
export const overwrite = (from, tag) =>
  one(`overwrite ${from}`, "overwrite", { rows: lot(from, 4, tag) }, { replaced: lot(from, 4, tag) });
// Back to before LATER, which the other side has; on the ground's own branch.
export const restore = () => ({
  label: "restore",
  onGround: true,
  replaced: BASE.rows,
  restored: true,
  run: async (g, branch) => g.op(branch, "restore", { version: await beforeLater(g, branch) }),
});
const beforeLater = async (g, branch) => load(g.storage(branch)).version - 1;
// A commit, and a restore that takes it back: no change.
export const restoreBack = (from) => ({
  label: `restore back ${from}`,
  async run(g, branch) {
    const { version } = load(g.storage(branch));
    await g.op(branch, "add", { rows: lot(from, 2, "x") });
    await g.op(branch, "restore", { version });
  },
});
export const config = (key, value) => keys("config", key, value);
export const tableKey = (key, value) => keys("metadata", key, value);
const keys = (map, key, value) => ({
  label: `${map} ${key}=${value}`,
  run: async (g, branch) => configure(g.storage(branch), { [map === "metadata" ? "table" : map]: { [key]: value } }),
  [map]: { [key]: value },
});

// --- both on one state ---

const without = (r, name) => Object.fromEntries(Object.entries(r).filter(([k]) => k !== name));
const renamed = (r, from, to) => Object.fromEntries(Object.entries(r).map(([k, v]) => [k === from ? to : k, v]));

// The rows after both: each with the sides that wrote it anew.
function rowsOf(base, sides) {
  const replaced = sides.find((x) => x.replaced);
  let table = (replaced ? replaced.replaced : base.rows).map((r) => ({ r, by: new Set(replaced ? [replaced] : []) }));
  for (const x of sides) {
    if (x.gone) table = table.filter(({ r }) => !x.gone.includes(r.id));
    for (const t of x.moved ? table.filter(({ r }) => x.moved[0].includes(r.id)) : []) {
      t.r = { ...t.r, ...x.moved[1] };
      t.by.add(x);
    }
  }
  for (const x of sides) table.push(...(x.more ?? []).map((r) => ({ r, by: new Set([x]) })));
  for (const x of sides.filter((s) => s.add))
    for (const t of table) {
      const other = [...t.by].some((s) => s !== x);
      t.r = { ...t.r, [x.add.name]: other ? null : x.add.value(t.r) };
    }
  for (const x of sides) {
    if (x.drop) table.forEach((t) => (t.r = without(t.r, x.drop)));
    if (x.alter?.rename) table.forEach((t) => (t.r = renamed(t.r, x.alter.name, x.alter.rename)));
  }
  return table.map((t) => t.r);
}

function fieldsOf(base, sides) {
  let fields = base.fields.map((f) => [...f]);
  for (const { add } of sides.filter((x) => x.add)) fields.push([add.name, add.type, add.nullable, {}]);
  for (const { alter } of sides.filter((x) => x.alter))
    fields = fields.map(([name, type, may, metadata]) =>
      name === alter.name
        ? [name, alter.type ?? type, alter.nullable ?? may, { ...metadata, ...alter.metadata }]
        : [name, type, may, metadata],
    );
  for (const { alter } of sides.filter((x) => x.alter?.rename)) fields = fields.map((f) => (f[0] === alter.name ? [alter.rename, ...f.slice(1)] : f));
  for (const { drop } of sides.filter((x) => x.drop)) fields = fields.filter((f) => f[0] !== drop);
  return fields;
}

const withKeys = (map, changes) => Object.fromEntries(Object.entries({ ...map, ...changes }).filter(([, v]) => v !== null));

// What both give that do not clash. `notes`: [column, rows] that a note must speak of.
export function together(base, a, b) {
  const sides = a.shared && b.shared ? [a] : [a, b],
    gap = (x, other) => (x.add?.nullable ? (other.more?.length ?? 0) + (other.moved?.[0].length ?? 0) : 0);
  const replaced = sides.some((x) => x.replaced && !x.restored);
  return {
    rows: rowsOf(base, sides),
    fields: fieldsOf(base, sides),
    config: sides.reduce((m, x) => withKeys(m, x.config), base.config),
    metadata: sides.reduce((m, x) => withKeys(m, x.metadata), base.metadata),
    indexes: replaced ? [] : [...base.indexes, ...sides.flatMap((x) => x.index?.name ?? [])],
    notes: [
      [a, b],
      [b, a],
    ].flatMap(([x, y]) => (sides.length > 1 && gap(x, y) ? [[x.add.name, gap(x, y)]] : [])),
  };
}
