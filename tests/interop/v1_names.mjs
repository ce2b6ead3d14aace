// SPDX-License-Identifier: Apache-2.0
// Manifests named 1.manifest, 2.manifest ... (old scheme), enough of them that text order and number order differ, with a branch.
import { fresh, rows, say } from "./lib.mjs";
const db = await fresh();
const t = await db.createTable("t", rows(0, 1), { storageOptions: { new_table_enable_v2_manifest_paths: "false" } });
for (let i = 1; i < 12; i++) await t.add(rows(i, 1));
const f = await (await t.branches()).create("feature");
await f.add(rows(100, 1, "f"));
await say("main", t);
await say("feature", f);
