// SPDX-License-Identifier: Apache-2.0
// Stock operations on the schema and by key, for reader.mjs. A type goes by its name in apache-arrow ("Int64").
const arrowType = ({ arrow }, name) => name && new arrow[name]();

export const ALTERATIONS = {
  addColumns: (t, { columns }) => t.addColumns(Object.entries(columns).map(([name, valueSql]) => ({ name, valueSql }))),
  dropColumns: (t, { names }) => t.dropColumns(names),
  alter: (t, { path, rename, nullable, type }, engine) =>
    t.alterColumns([{ path, rename, nullable, dataType: arrowType(engine, type) }]),
  fieldMetadata: (t, { path, metadata }) => t.updateFieldMetadata([{ path, metadata }]),
  primaryKey: (t, { columns }) => t.setUnenforcedPrimaryKey(columns),
  // Rows that have the key are updated, others inserted (with updateOnly they are left out).
  mergeInsert: (t, { on, rows, updateOnly }) => {
    const updating = t.mergeInsert(on).whenMatchedUpdateAll();
    return (updateOnly ? updating : updating.whenNotMatchedInsertAll()).execute(rows);
  },
  // The ids of the rows nearest to a vector.
  search: async (t, { vector, limit }) =>
    (await t.query().nearestTo(vector).limit(limit).select(["id"]).toArray()).map((r) => Number(r.id)),
};
