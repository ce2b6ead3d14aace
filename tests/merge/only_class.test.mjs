// SPDX-License-Identifier: Apache-2.0
// only=: some classes of what the source changed, in stock Lance's hands afterwards. What each class means is shown by the
// unit tests of merge/only.c; here the results must be tables that both engines read and go on with.
import assert from "node:assert/strict";
import { load } from "../interop/manifest.mjs";
import { plus, rows, without } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, onEach } from "../harness/tip.mjs";
import { merge, mergeFails, scratch } from "../harness/verbs.mjs";

const TWENTY = rows(0, 20);
const indexes = (g, b) => load(g.storage(b)).indices.map((i) => i.name);

onEach("only= one class after the other", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f", "a", "b", "c", "d");
  await g.op("f", "index", { column: "id" });
  await g.op("f", "add", { rows: rows(100, 3, "f") });
  await g.op("f", "addColumn", { name: "x", sql: "id + 1" });
  await g.op("f", "add", { rows: plus(rows(200, 2, "f"), () => ({ x: 5 })) });
  for (const b of ["a", "b", "c", "d"]) await g.op(b, "delete", { where: "id = 3" });
  const here = without(TWENTY, 3),
    came = [...rows(100, 3, "f"), ...rows(200, 2, "f")];

  await merge(g, "a", "f only=rows");
  await checkTip(g, "a", [...here, ...came]);
  assert.deepEqual(indexes(g, "a"), []);
  for (const e of ["lance10", "lance12"]) await g.op("a", "update", { where: "id IN (4, 200)", values: { n: 1 } }, e);
  await g.op("a", "addColumn", { name: "y", sql: "id * 2" });
  await g.op("a", "optimize");

  await merge(g, "b", "f only=schema,columns");
  await checkTip(g, "b", plus(here, (r) => ({ x: r.id + 1 })));
  await g.op("b", "optimize");

  await merge(g, "c", "f only=rows,schema");
  await checkTip(g, "c", [...plus(here, () => ({ x: null })), ...plus(rows(100, 3, "f"), (r) => ({ x: r.id + 1 })), ...plus(rows(200, 2, "f"), () => ({ x: 5 }))]);

  await merge(g, "d", "f only=indexes");
  assert.deepEqual(indexes(g, "d"), ["id_idx"]);
  await checkTip(g, "d", here);

  const n1 = (r) => ({ n: r.id === 4 || r.id === 200 ? 1 : r.n, y: r.id * 2 });
  await checkThenUnmount(g, { a: plus([...here, ...came], n1), b: plus(here, (r) => ({ x: r.id + 1 })) });
});

onEach("only= of what cannot come alone is refused", async (t, engine) => {
  const g = await scratch(t, engine, rows(0, 10), rows(10, 10));
  await g.fork("f");
  await g.op("f", "delete", { where: "id = 5" });
  await g.op("f", "addColumn", { name: "x", sql: "id + 1" });
  await g.op("main", "delete", { where: "id = 3" });
  assert.match((await mergeFails(g, "main", "f only=columns,schema", "EOPNOTSUPP", "refused")).text, /its columns without its rows/);
  await checkThenUnmount(g, { main: without(TWENTY, 3) });
});
