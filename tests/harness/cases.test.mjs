// SPDX-License-Identifier: Apache-2.0
// The table of known failures in tests/README.md: each test file that it names is there, and speaks of the case; and each
// case that some test speaks of is in the table.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

const TESTS = path.join(import.meta.dirname, "..");
const table = [...fs.readFileSync(path.join(TESTS, "README.md"), "utf8").matchAll(/^\| (C\d\d) \| (.+) \| (.+) \|$/gm)]
  .map(([, name, what, files]) => ({ name, what, files: [...files.matchAll(/`([^`]+)`/g)].map((m) => m[1]) }));
const text = (file) => fs.readFileSync(path.join(TESTS, file), "utf8");
const speaksOf = (file) => new Set(text(file).match(/\bC\d\d\b/g) ?? []);

test("every case of the table has a test file that speaks of it", () => {
  assert.ok(table.length > 60, `${table.length} cases`);
  assert.equal(new Set(table.map((c) => c.name)).size, table.length, "each once");
  for (const { name, files } of table) {
    assert.ok(files.length > 0, `${name} names a file`);
    for (const file of files) assert.ok(speaksOf(file).has(name), `${file} does not speak of ${name}`);
  }
});

test("every case that a test is named for is in the table", () => {
  const known = new Set(table.map((c) => c.name));
  for (const dir of fs.readdirSync(TESTS, { withFileTypes: true }).filter((e) => e.isDirectory() && e.name !== "interop"))
    for (const file of fs.readdirSync(path.join(TESTS, dir.name)).filter((n) => n.endsWith(".test.mjs")))
      for (const [, title] of text(path.join(dir.name, file)).matchAll(/^\s*(?:test|onEach)\(\s*["'`](.*?)["'`]/gm))
        for (const name of title.match(/\bC\d\d\b/g) ?? [])
          assert.ok(known.has(name), `${dir.name}/${file}: ${title}: ${name} is not in the table`);
});
