// SPDX-License-Identifier: Apache-2.0
// Changes of metadata and types. meta: metadata of column v on both sides, one key in common; cast: the number column id
// becomes int64; nullable: id may be null.
import { arrow, fresh, rows, say } from "./lib.mjs";

const db = await fresh();
const { Field, Int32, Int64, Schema, Utf8 } = arrow;
const schema = new Schema([new Field("id", new Int32(), false), new Field("v", new Utf8(), true)]);
const ten = rows(0, 10).map(({ id, v }) => ({ id, v }));
const t = await db.createTable("t", ten, { schema });
const b = await t.branches();
const meta = await b.create("meta"),
  cast = await b.create("cast"),
  nullable = await b.create("nullable");
const set = (h, metadata) => h.updateFieldMetadata([{ path: "v", metadata }]);
await set(meta, { unit: "branch", a: "1" });
await set(t, { unit: "main", b: "2" });
await cast.alterColumns([{ path: "id", dataType: new Int64() }]);
await nullable.alterColumns([{ path: "id", nullable: true }]);
for (const [n, h] of Object.entries({ main: t, meta, cast, nullable })) await say(n, h);
