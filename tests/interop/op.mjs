// SPDX-License-Identifier: Apache-2.0
// One stock commit by hand, while something is mounted:
//   node op.mjs DATASET.lance BRANCH OP [ARGS]     LDB=lance12 for the other engine
// OP: add FROM N | delete SQL | update SQL VALUE | optimize | clean | index COLUMN | dropIndex NAME | restore VERSION |
//     fork NAME [FROM [VERSION]] | drop NAME | branches | count [SQL]
import { loadEngine } from "./engines.mjs";
import { operate } from "./reader.mjs";

const [, , dir, branch, op, a, b, c] = process.argv;
const row = (id) => ({ id, v: `o${id}`, n: id });
const args =
  {
    add: () => ({ rows: Array.from({ length: Number(b ?? 1) }, (_, i) => row(Number(a) + i)) }),
    delete: () => ({ where: a }),
    update: () => ({ where: a, values: { v: b } }),
    count: () => ({ where: a }),
    index: () => ({ column: a }),
    dropIndex: () => ({ name: a }),
    restore: () => ({ version: Number(a) }),
    fork: () => ({ name: a, from: b, version: c && Number(c) }),
    drop: () => ({ name: a }),
  }[op]?.() ?? {};
try {
  const { version, value } = await operate(loadEngine(process.env.LDB ?? "lance10"), dir, branch, op, args);
  console.log(`${branch} ${op}: version ${version}${value === undefined ? "" : ` ${JSON.stringify(value)}`}`);
} catch (e) {
  console.error("ERROR", e.message.split("\n")[0]);
  process.exitCode = 1;
}
