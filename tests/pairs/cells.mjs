// SPDX-License-Identifier: Apache-2.0
// The pair table of merge-semantics section 5, each cell in the cases that it tells apart. Each case is made in both
// directions; where nothing else is said, the result is what both did, put together (operations.mjs).
import {
  addColumn,
  addNotNull,
  append,
  compact,
  config,
  dropColumn,
  fieldKey,
  index,
  insert,
  nullable,
  overwrite,
  pickColumn,
  remove,
  rename,
  restore,
  restoreBack,
  retype,
  tableKey,
  update,
  upsert,
} from "./operations.mjs";

// A conflict: ECANCELED. `words`: what a and b did to the unit, of which the conflict's kind is made, ours first.
const conflict = (unit, ...words) => ({ stops: "conflict", unit, words });
const REPLACED = { stops: "conflict", unit: /./, kind: /^replaced/ };
// Cannot be done right: a conflict or a refusal that says this.
const stopped = (says) => ({ stops: "either", says });
const maybe = (...names) => ({ maybe: names });

const ROW = (i) => new RegExp(`^row ${i} of fragment 0$`);
const COLUMN = (name) => new RegExp(`\\bcolumn ${name}\\b`);
const up = (v) => ({ v });

export const CELLS = [
  ["append", "append", [
    ["new rows on both sides", append(100, "s"), append(200, "d")],
    ["a primary key, other keys", append(100, "s"), append(200, "d"), { keyed: true, ...maybeStopped(/key/) }],
    ["a primary key, the same key", append(100, "s"), append(101, "d"), { keyed: true, ...stopped(/key/) }],
  ]],
  ["append", "delete", [["", append(100, "s"), remove(3, 13)]]],
  ["append", "update", [
    ["", append(100, "s"), update(3, up("up"))],
    ["a merge_insert that inserts too", append(100, "s"), upsert(3, "d", 200)],
    ["a primary key, the merge_insert inserts the same key", append(100, "s"), insert(100, "d"), { keyed: true, ...stopped(/key/) }],
  ]],
  ["append", "add column", [
    ["a column that may be null", append(100, "s"), addColumn("a")],
    ["a column that may not be null", append(100, "s"), addNotNull("k"), conflict(COLUMN("k"))],
  ]],
  ["append", "drop column", [["", append(100, "s"), dropColumn("w")]]],
  ["append", "alter", [
    ["a name", append(100, "s"), rename("v", "text")],
    ["a metadata key", append(100, "s"), fieldKey("v", "k", "1")],
    ["a type", append(100, "s"), retype("n"), stopped(/\bn\b/)],
    ["no nulls any more", append(100, "s"), nullable("n", false), stopped(/\bn\b/)],
  ]],
  ["append", "compaction", [["", append(100, "s"), compact()]]],
  ["append", "index", [["", append(100, "s"), index("n")]]],
  ["append", "overwrite, restore", [
    ["overwritten", append(100, "s"), overwrite(700, "o"), REPLACED],
    ["restored", append(100, "s"), restore(), REPLACED],
    ["restored to the base", append(100, "s"), restoreBack(800)],
  ]],
  ["append", "config", [["", append(100, "s"), config("k", "1")]]],

  ["delete", "delete", [
    ["other rows", remove(3, 13), remove(4, 14)],
    ["the same row", remove(3, 13), remove(3, 14)],
    ["together a whole fragment", remove(0, 1, 2, 3, 4), remove(4, 5, 6, 7, 8, 9)],
  ]],
  ["delete", "update", [
    ["other rows", remove(3, 13), update(4, up("up"))],
    ["the same row", remove(3), update(3, up("up")), conflict(ROW(3), "delete", "update")],
    ["another row by merge_insert", remove(3), upsert(4, "d", 200)],
    ["the same row by merge_insert", remove(3), upsert(3, "d", 200), conflict(ROW(3), "delete", "update")],
  ]],
  ["delete", "add column", [
    ["a column that may be null", remove(3, 13), addColumn("a")],
    ["a column that may not be null", remove(3, 13), addNotNull("k")],
  ]],
  ["delete", "drop column", [["", remove(3, 13), dropColumn("w")]]],
  ["delete", "alter", [
    ["a name", remove(3, 13), rename("v", "text")],
    ["a type", remove(3, 13), retype("n")],
    ["no nulls any more", remove(3, 13), nullable("n", false)],
  ]],
  ["delete", "compaction", [
    ["", remove(3, 13), compact()],
    ["a whole fragment", remove(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), compact()],
  ]],
  ["delete", "index", [["", remove(3, 13), index("n")]]],
  ["delete", "overwrite, restore", [
    ["overwritten", remove(3), overwrite(700, "o"), REPLACED],
    ["restored", remove(3), restore(), REPLACED],
    ["restored to the base", remove(3), restoreBack(800)],
  ]],
  ["delete", "config", [["", remove(3, 13), config("k", "1")]]],

  ["update", "update", [
    ["other rows", update(3, up("s")), update(4, up("d"))],
    ["the same row", update(3, up("s")), update(3, up("d")), conflict(ROW(3), "update", "update")],
    ["the same row and value", update(3, up("x")), update(3, up("x")), conflict(ROW(3), "update", "update")],
    ["the same row, one by merge_insert", update(3, up("s")), upsert(3, "d", 200), conflict(ROW(3), "update", "update")],
    ["a primary key, both insert the same key", insert(100, "s"), insert(100, "d"), { keyed: true, ...stopped(/key/) }],
  ]],
  ["update", "add column", [
    // The copy that the update made has no place for the value that the row has in the new column.
    ["a column that may be null", update(3, up("up")), addColumn("a"), conflict(ROW(3), "update", "column")],
    ["by merge_insert", upsert(3, "s", 100), addColumn("a"), conflict(ROW(3), "update", "column")],
    ["a column that may not be null", update(3, up("up")), addNotNull("k"), conflict(COLUMN("k"))],
  ]],
  ["update", "drop column", [
    ["another column", update(3, up("up")), dropColumn("w")],
    ["the same column", update(3, { w: 99 }), dropColumn("w"), conflict(COLUMN("w"))],
  ]],
  ["update", "alter", [
    ["a name", update(3, up("up")), rename("v", "text")],
    ["a metadata key", update(3, up("up")), fieldKey("v", "k", "1")],
    ["a type", update(3, up("up")), retype("n"), stopped(/\bn\b/)],
    ["no nulls any more", update(3, up("up")), nullable("n", false), stopped(/\bn\b/)],
  ]],
  ["update", "compaction", [
    ["", update(3, up("up")), compact()],
    ["by merge_insert", upsert(3, "s", 100), compact()],
  ]],
  ["update", "index", [
    ["another column", update(3, up("up")), index("n")],
    ["the same column", update(3, { n: 99 }), index("n")],
  ]],
  ["update", "overwrite, restore", [
    ["overwritten", update(3, up("up")), overwrite(700, "o"), REPLACED],
    ["restored", update(3, up("up")), restore(), REPLACED],
    ["restored to the base", update(3, up("up")), restoreBack(800)],
  ]],
  ["update", "config", [["", update(3, up("up")), config("k", "1")]]],

  ["add column", "add column", [
    ["other names", addColumn("a"), addColumn("b", "n * 2", "double", (r) => r.n * 2)],
    ["the same name, other types", addColumn("a"), addColumn("a", "v", "string", (r) => r.v), conflict(COLUMN("a"))],
    ["the same name and type, other files", addColumn("a"), addColumn("a", "n + 2", "double", (r) => r.n + 2), conflict(COLUMN("a"))],
    ["the same name, type and files", pickColumn("a"), pickColumn("a")],
  ]],
  ["add column", "drop column", [["another column", addColumn("a"), dropColumn("w")]]],
  ["add column", "alter", [
    ["the name of another column", addColumn("a"), rename("v", "text")],
    ["to the same name", addColumn("text"), rename("v", "text"), conflict(COLUMN("text"))],
    ["the type of another column", addColumn("a"), retype("n")],
  ]],
  ["add column", "compaction", [["", addColumn("a"), compact()]]],
  ["add column", "index", [["", addColumn("a"), index("n")]]],
  ["add column", "overwrite, restore", [
    ["overwritten", addColumn("a"), overwrite(700, "o"), REPLACED],
    ["restored", addColumn("a"), restore(), REPLACED],
    ["restored to the base", addColumn("a"), restoreBack(800)],
  ]],
  ["add column", "config", [["", addColumn("a"), config("k", "1")]]],

  ["drop column", "drop column", [
    ["the same column", dropColumn("w"), dropColumn("w")],
    ["other columns", dropColumn("w"), dropColumn("v")],
  ]],
  ["drop column", "alter", [
    ["the name of the same column", dropColumn("v"), rename("v", "text"), conflict(COLUMN("(v|text)"))],
    ["the type of the same column", dropColumn("n"), retype("n"), conflict(COLUMN("n"))],
    ["a metadata key of the same column", dropColumn("v"), fieldKey("v", "k", "1"), conflict(COLUMN("v"))],
    ["another column", dropColumn("w"), rename("v", "text")],
  ]],
  ["drop column", "compaction", [["", dropColumn("w"), compact()]]],
  ["drop column", "index", [
    ["on another column", dropColumn("w"), index("n")],
    ["on the same column", dropColumn("w"), index("w"), conflict(/\b(w|w_idx)\b/)],
  ]],
  ["drop column", "overwrite, restore", [
    ["overwritten", dropColumn("w"), overwrite(700, "o")],
    ["restored", dropColumn("w"), restore()],
    ["restored to the base", dropColumn("w"), restoreBack(800)],
  ]],
  ["drop column", "config", [["", dropColumn("w"), config("k", "1")]]],

  ["alter", "alter", [
    ["one name, two values", rename("v", "text"), rename("v", "words"), conflict(COLUMN("(v|text|words)"))],
    ["one name, the same value", rename("v", "text"), rename("v", "text")],
    ["one metadata key, two values", fieldKey("v", "k", "1"), fieldKey("v", "k", "2"), conflict(/metadata key k/)],
    ["one metadata key, the same value", fieldKey("v", "k", "1"), fieldKey("v", "k", "1")],
    ["two metadata keys", fieldKey("v", "k", "1"), fieldKey("v", "l", "2")],
    ["one name, another column's null", rename("v", "text"), nullable("n", false)],
    ["one column, two attributes", rename("v", "text"), fieldKey("v", "k", "1")],
    ["a type and a name of one column", retype("n"), rename("n", "number"), conflict(COLUMN("number"))], // stock drops the column and adds one
    ["the same type", retype("n"), retype("n"), conflict(COLUMN("n"))],
  ]],
  ["alter", "compaction", [
    ["a name", rename("v", "text"), compact()],
    ["a type", retype("n"), compact()],
    ["no nulls any more", nullable("n", false), compact()],
  ]],
  ["alter", "index", [
    ["the name of its column", rename("n", "number"), index("n")],
    ["the type of its column", retype("n"), index("n"), { indexes: ["id_idx"] }],
    ["the type of another column", retype("n"), index("w")],
  ]],
  ["alter", "overwrite, restore", [
    ["overwritten, a name", rename("v", "text"), overwrite(700, "o")],
    ["overwritten, a metadata key", fieldKey("v", "k", "1"), overwrite(700, "o")],
    ["overwritten, a type", retype("n"), overwrite(700, "o"), REPLACED],
    ["restored, a name", rename("v", "text"), restore()],
    ["restored to the base", rename("v", "text"), restoreBack(800)],
  ]],
  ["alter", "config", [["", rename("v", "text"), config("k", "1")]]],

  ["compaction", "compaction", [["", compact(), compact()]]],
  ["compaction", "index", [["", compact(), index("n"), maybe("n_idx")]]],
  ["compaction", "overwrite, restore", [
    ["overwritten", compact(), overwrite(700, "o")],
    ["restored", compact(), restore()],
    ["restored to the base", compact(), restoreBack(800)],
  ]],
  ["compaction", "config", [["", compact(), config("k", "1")]]],

  ["index", "index", [
    ["other names", index("n"), index("w")],
    ["one name, one definition", index("n"), index("n")],
    ["one name, other columns", index("n", "same"), index("w", "same"), conflict(/index same/)],
  ]],
  ["index", "overwrite, restore", [
    ["overwritten", index("n"), overwrite(700, "o"), { indexes: [] }],
    ["restored", index("n"), restore(), maybe("n_idx")],
    ["restored to the base", index("n"), restoreBack(800)],
  ]],
  ["index", "config", [["", index("n"), config("k", "1")]]],

  ["overwrite, restore", "overwrite, restore", [
    ["both overwritten", overwrite(700, "o"), overwrite(800, "p"), REPLACED],
    ["overwritten and restored", overwrite(700, "o"), restore(), REPLACED],
    ["one restored, the other back to the base", restore(), restoreBack(800)],
    ["one overwritten, the other back to the base", overwrite(700, "o"), restoreBack(800)],
    ["both back to the base", restoreBack(700), restoreBack(800)],
  ]],
  ["overwrite, restore", "config", [
    ["overwritten", overwrite(700, "o"), config("k", "1")],
    ["overwritten, table metadata", overwrite(700, "o"), tableKey("k", "1")],
    ["restored", restore(), config("k", "1")],
    ["restored to the base", restoreBack(800), config("k", "1")],
  ]],

  ["config", "config", [
    ["other keys", config("k", "1"), config("l", "2")],
    ["one key, the same value", config("k", "1"), config("k", "1")],
    ["one key, two values", config("k", "1"), config("k", "2"), conflict(/config key k/)],
    ["one key of the table metadata, two values", tableKey("k", "1"), tableKey("k", "2"), conflict(/table metadata key k/)],
    ["one key of two maps", config("k", "1"), tableKey("k", "2")],
  ]],
];

function maybeStopped(says) {
  return { mayStop: says };
}

// Cases that stock Lance cannot make; the unit tests of the merge engine have them, on states made by hand.
export const NOT_MADE = {
  "add column, drop column: inside a dropped struct": "stock Lance for Node adds top-level columns only; unit test 'a new column inside a dropped struct: conflict'",
  "overwrite, restore twice: both restored to before the base": "a restore reaches back on its own branch only, and takes the lineage back with it where the base came by a merge",
};
