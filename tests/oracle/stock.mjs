// SPDX-License-Identifier: Apache-2.0
// Stock commits as steps of a history. draw(random, model, number) says one concretely, as plain data that can be
// printed, kept and replayed; it may give undefined when the kind makes no sense now. effect(step, model) gives the rows
// (columns, maps) that it must leave behind, undefined when a replay with fewer steps leaves nothing to do.

export const COLUMNS = new Map([
  ["id", "id"],
  ["tok", "tok"],
  ["v", "v"],
  ["n", "n"],
]);
export const INDEXED = "n";
// A key of one of the three maps, as conflicts name it.
export const mapKey = (map, key) => `${{ config: "config", table: "table metadata", schema: "schema metadata" }[map]} key ${key}`;

// A new row; columns that were added since get a value that tells where it comes from.
export function newRow(id, tok, columns = COLUMNS, from) {
  const known = { id, tok, v: `v${tok}`, n: (id * 7) % 23 },
    values = {};
  for (const c of columns.keys()) values[c] = known[c] ?? `${tok}#${c}`;
  return { tok, from, values };
}
const byName = (row, columns) => Object.fromEntries([...columns].map(([id, name]) => [name, row.values[id]]));
const table = (rows) => new Map(rows.map((r) => [r.tok, r]));

// Predicates on id, for the engine and for the model.
const PREDICATES = {
  modulo: { sql: ([m, k]) => `id % ${m} = ${k}`, js: ([m, k]) => (id) => id % m === k },
  among: { sql: ([...ids]) => `id in (${ids.join(", ")})`, js: (ids) => (id) => ids.includes(id) },
  between: { sql: ([a, b]) => `id >= ${a} and id <= ${b}`, js: ([a, b]) => (id) => id >= a && id <= b },
};
export const sql = ([kind, ...args]) => PREDICATES[kind].sql(args);
const holds = ([kind, ...args]) => {
  const test = PREDICATES[kind].js(args);
  return (row) => test(row.values.id);
};
function drawPredicate(r, rows) {
  const ids = rows.map((row) => row.values.id);
  const kind = r.weighted({ among: 6, modulo: 2, between: 2 });
  if (kind === "modulo") {
    const m = r.int(2, 7);
    return ["modulo", m, r.int(0, m - 1)];
  }
  if (kind === "between") {
    const a = r.pick(ids);
    return ["between", a, a + r.int(0, 6)];
  }
  return ["among", ...new Set(r.some(ids, r.int(1, 4)))];
}

export const someBranch = (r, m) => r.pick([...m.branches.keys()]);
const liveRows = (m, branch) => [...m.tip(branch).rows.values()];
const freshIds = (r, m, n) => Array.from({ length: n }, () => (r.chance(0.05) ? r.int(0, 30) : (m.nextId = (m.nextId ?? 100) + 1)));
const indexHurts = (state) => state.index === "inherited"; // stock compactions would break the inherited index

// A commit on a branch that needs rows: draw() completes the step.
const onRows = (draw) => (r, m, number) => {
  const branch = someBranch(r, m),
    rows = liveRows(m, branch);
  return rows.length ? { branch, ...draw(r, rows, number, m) } : undefined;
};

export const STOCK = {
  append: {
    weight: 10,
    draw(r, m, number) {
      const branch = someBranch(r, m);
      return { branch, rows: freshIds(r, m, r.int(1, 6)).map((id, i) => [id, `a${number}.${i}`]) };
    },
    effect(step, m) {
      const { rows, columns } = m.tip(step.branch),
        added = step.rows.map(([id, tok]) => newRow(id, tok, columns));
      return { rows: new Map([...rows, ...table(added)]), args: { rows: added.map((x) => byName(x, columns)) } };
    },
  },
  delete: {
    weight: 10,
    draw: onRows((r, rows) => ({ where: drawPredicate(r, rows) })),
    effect(step, m) {
      const gone = holds(step.where);
      return {
        rows: table(liveRows(m, step.branch).filter((x) => !gone(x))),
        args: { where: sql(step.where) },
        how: "delete",
      };
    },
  },
  update: {
    weight: 10,
    draw: onRows((r, rows, number) => ({ where: drawPredicate(r, rows), mark: `u${number}` })),
    effect(step, m) {
      const hit = holds(step.where),
        v = m.tip(step.branch).columns.get("v"); // may be renamed or dropped
      const renew = (x) => ({
        tok: `${x.tok}.${step.mark}`,
        from: x.tok,
        values: { ...x.values, tok: `${x.tok}.${step.mark}`, ...(v && { v: step.mark }), n: x.values.n + 1 },
      });
      return {
        rows: table(liveRows(m, step.branch).map((x) => (hit(x) ? renew(x) : x))),
        args: {
          where: sql(step.where),
          valuesSql: { tok: `tok || '.${step.mark}'`, ...(v && { [v]: `'${step.mark}'` }), n: "n + 1" },
        },
        how: "update",
        wrote: ["tok", "n", ...(v ? ["v"] : [])],
      };
    },
  },
  upsert: {
    weight: 7,
    draw: onRows((r, rows, number, m) => {
      const ids = [...new Set(r.some(rows.map((x) => x.values.id), r.int(1, 3))), ...freshIds(r, m, r.int(0, 2))];
      return { rows: [...new Set(ids)].map((id, i) => [id, `m${number}.${i}`]) };
    }),
    effect: (step, m) => mergeInsert(step, m, true),
  },
  insertNew: {
    weight: 2,
    draw: onRows((r, rows, number, m) => {
      const ids = [r.pick(rows).values.id, ...freshIds(r, m, r.int(1, 2))];
      return { rows: [...new Set(ids)].map((id, i) => [id, `i${number}.${i}`]) };
    }),
    effect: (step, m) => mergeInsert(step, m, false),
  },
  compact: {
    weight: 6,
    draw: (r, m) => ({ branch: someBranch(r, m) }),
    effect: (step, m) => (indexHurts(m.tip(step.branch)) ? undefined : {}),
  },
  clean: {
    weight: 2,
    draw: (r, m) => ({ branch: someBranch(r, m) }),
    effect: (step, m) => (indexHurts(m.tip(step.branch)) ? undefined : {}),
  },
  index: {
    weight: 3,
    draw: onRows(() => ({})),
    effect: (step, m) => (liveRows(m, step.branch).length ? { args: { column: INDEXED }, index: "own" } : undefined),
  },
  restore: {
    weight: 1.5,
    draw: (r, m) => ({ branch: someBranch(r, m), back: r.int(1, 4) }),
    effect(step, m) {
      const line = m.branches.get(step.branch),
        version = line.tip.number - step.back,
        state = line.states.get(version);
      if (!state || version < (line.oldest ?? 0)) return undefined;
      const { rows, columns, carried, picked, index } = state;
      return { rows, columns, carried, picked, index, args: { version }, how: "replace" };
    },
  },
  overwrite: {
    weight: 0.3,
    draw: (r, m, number) => ({
      branch: someBranch(r, m),
      rows: freshIds(r, m, r.int(1, 6)).map((id, i) => [id, `o${number}.${i}`]),
    }),
    effect(step, m) {
      const { columns } = m.tip(step.branch),
        rows = step.rows.map(([id, tok]) => newRow(id, tok, columns));
      return { rows: table(rows), args: { rows: rows.map((x) => byName(x, columns)) }, how: "replace", index: undefined };
    },
  },
  configure: {
    weight: 5,
    own: true, // by the tests themselves: the engines' binding for Node cannot
    draw(r, m, number) {
      const map = r.pick(["config", "table", "schema"]),
        keys = r.some(["a", "b", "c"], r.int(1, 2));
      return { branch: someBranch(r, m), map, keys: keys.map((k) => [k, r.chance(0.25) ? null : r.pick(["1", "2", `x${number}`])]) };
    },
    effect(step, m) {
      const maps = new Map(m.tip(step.branch).maps);
      for (const [key, value] of step.keys)
        if (value === null) maps.delete(mapKey(step.map, key));
        else maps.set(mapKey(step.map, key), value);
      return { maps, args: { [step.map]: Object.fromEntries(step.keys) } };
    },
  },
  addColumn: {
    feature: "schema",
    weight: 4,
    draw: (r, m, number) => ({ branch: someBranch(r, m), column: `c${number}`, name: r.pick([`c${number}`, "extra"]) }),
    effect(step, m) {
      const { rows, columns } = m.tip(step.branch);
      if ([...columns.values()].includes(step.name)) return undefined;
      const withValue = (x) => ({ ...x, values: { ...x.values, [step.column]: `${x.tok}#${step.column}` } });
      return {
        rows: table([...rows.values()].map(withValue)),
        columns: new Map([...columns, [step.column, step.name]]),
        args: { name: step.name, valueSql: `tok || '#${step.column}'` },
      };
    },
  },
  dropColumn: {
    feature: "schema",
    weight: 2,
    draw: (r, m) => ({ branch: someBranch(r, m), which: r.int(0, 9) }),
    effect(step, m) {
      const { rows, columns } = m.tip(step.branch),
        added = [...columns.keys()].filter((c) => c === "v" || !COLUMNS.has(c)),
        id = added[step.which % (added.length || 1)];
      if (!id) return undefined;
      const without = (x) => ({ ...x, values: Object.fromEntries(Object.entries(x.values).filter(([c]) => c !== id)) });
      return {
        rows: table([...rows.values()].map(without)),
        columns: new Map([...columns].filter(([c]) => c !== id)),
        args: { name: columns.get(id) },
      };
    },
  },
  renameColumn: {
    feature: "schema",
    weight: 2,
    draw: (r, m, number) => ({ branch: someBranch(r, m), which: r.int(0, 9), name: `r${number}` }),
    effect(step, m) {
      const { columns } = m.tip(step.branch),
        ids = [...columns.keys()].filter((c) => !["id", "tok", INDEXED].includes(c)),
        id = ids[step.which % (ids.length || 1)];
      if (!id) return undefined;
      return {
        columns: new Map([...columns].map(([c, name]) => [c, c === id ? step.name : name])),
        args: { name: columns.get(id), rename: step.name },
      };
    },
  },
};

// merge_insert by id. Ids that stand more than once (both sides of a merge added one) are left alone.
function mergeInsert(step, m, update) {
  const { rows, columns } = m.tip(step.branch),
    all = [...rows.values()],
    out = new Map(rows),
    used = [];
  for (const [id, tok] of step.rows) {
    const there = all.filter((x) => x.values.id === id);
    if (there.length > 1) continue;
    const row = newRow(id, tok, columns, update ? there[0]?.tok : undefined);
    used.push(row);
    if (there.length && !update) continue;
    if (there.length) out.delete(there[0].tok);
    out.set(tok, row);
  }
  const wrote = used.some((x) => x.from) ? [...columns.keys()] : [];
  return used.length ? { rows: out, args: { rows: used.map((x) => byName(x, columns)) }, how: "update", wrote } : undefined;
}
