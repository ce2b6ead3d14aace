// SPDX-License-Identifier: Apache-2.0
// Where the two stock engines are: build/engines/<name> as setup.sh installs them, or the folder that LANCEFS_ENGINES names.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const PROJECT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const ENGINES = ["lance10", "lance12"]; // @lancedb/lancedb 0.37.1 = Lance 10, 0.39.0 = Lance 12

export function engineDir(name) {
  const root = process.env.LANCEFS_ENGINES ?? path.join(PROJECT, "build/engines");
  return path.isAbsolute(name) ? name : path.join(path.resolve(root), name);
}

// The modules of one engine. One process must load one engine only: both bring a native library of the same name.
export function loadEngine(name) {
  const dir = engineDir(name);
  if (!fs.existsSync(path.join(dir, "node_modules/@lancedb/lancedb")))
    throw new Error(
      `no engine in ${dir}: run tests/interop/setup.sh, or let LANCEFS_ENGINES name the folder that holds ${name}`,
    );
  const require = createRequire(path.join(dir, "package.json"));
  return { lancedb: require("@lancedb/lancedb"), arrow: require("apache-arrow") };
}
