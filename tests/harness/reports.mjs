// SPDX-License-Identifier: Apache-2.0
// Reports read as people read them (cat, in a process of its own) and taken apart; what they must say comes from elsewhere.
import assert from "node:assert/strict";
import path from "node:path";
import { LIMIT_MS, must, run, sh } from "./proc.mjs";
import { difference, snapshot } from "./workspace.mjs";

export const report = (g, branch, name) => g.m.tree(branch, name);
export const textOf = async (file) => (await must(run("cat", ["--", file], { encoding: "utf8" }))).stdout;

// Looks until a look was answered with a text that had been kept: one that was made within a tick of the file system's clock
// after a change is made anew. Gives what that look gave.
export async function untilKept(g, look) {
  const hits = async () => Number(/^lancefs_cache_hits_total\{cache="reports"\} (\d+)$/m.exec(await textOf(path.join(g.m.mnt, ".stats")))[1]);
  const end = Date.now() + LIMIT_MS;
  for (let before = await hits(), now; ; before = now) {
    const seen = await look();
    now = await hits();
    if (now > before) return seen;
    assert.ok(Date.now() < end, "no look was answered with a kept text");
  }
}

// What line.h says of escapes, undone.
export function unescapeField(field) {
  if (field === "-") return undefined;
  if (field === "\\-") return "-";
  const bytes = [];
  for (let i = 0; i < field.length; ) {
    const m = /^\\(?:x([0-9A-F]{2})|([\\tnr]))/.exec(field.slice(i));
    if (!m) {
      const c = String.fromCodePoint(field.codePointAt(i));
      bytes.push(...Buffer.from(c));
      i += c.length;
      continue;
    }
    bytes.push(m[1] ? parseInt(m[1], 16) : { "\\": 92, t: 9, n: 10, r: 13 }[m[2]]);
    i += m[0].length;
  }
  return Buffer.from(bytes).toString("utf8");
}

// { comments: [text], columns: [name], rows: [{ column: value }] }; every record has as many fields as the header.
export function parseReport(text) {
  assert.ok(text.endsWith("\n"), "the last line ends");
  assert.match(text, /^# /, "a report begins with a header");
  const lines = text.slice(0, -1).split("\n"),
    comments = lines.filter((l) => l.startsWith("#")),
    columns = comments.findLast((l) => l.includes("\t"))?.slice(2).split("\t") ?? [];
  const rows = lines
    .filter((l) => !l.startsWith("#"))
    .map((l) => {
      const fields = l.split("\t");
      assert.ok(fields.length >= columns.length, `fields of ${JSON.stringify(l)} under ${columns}`);
      return Object.assign(Object.fromEntries(columns.map((c, i) => [c, unescapeField(fields[i])])), { fields });
    });
  return { text, comments, columns, rows };
}
export const read = async (g, branch, name) => parseReport(await textOf(report(g, branch, name)));

// .status as { key: value }; a key with several values keeps the first.
export async function status(g, branch) {
  const { rows } = await read(g, branch, ".status");
  return Object.fromEntries(rows.map((r) => [r.key, r.value]));
}
// "# key: value" lines of a .diff
export const head = (r) =>
  Object.fromEntries(r.comments.map((l) => /^# ([\w-]+): (.*)$/.exec(l)).filter(Boolean).map((m) => [m[1], m[2]]));

// What stat says, what comes through a pipe, and what several programs copy are the same bytes.
export async function checkSizes(file, scratch) {
  const script = `
    n=$(stat -c %s -- "$1"); m=$(cat -- "$1" | wc -c); w=$(wc -c < "$1")
    [ "$n" = "$m" ] && [ "$n" = "$w" ] || { echo "stat $n, cat $m, wc $w"; exit 1; }
    cp -- "$1" "$2" && cmp -- "$1" "$2" && diff -- "$1" "$2" || exit 1
    dd if="$1" of="$2" bs=7 status=none && cmp -- "$1" "$2" || exit 1
    [ "$(tail -c 5 -- "$1" | od -c)" = "$(tail -c 5 -- "$2" | od -c)" ] || { echo tail; exit 1; }
    [ "$(head -c 9 -- "$1" | od -c)" = "$(head -c 9 -- "$2" | od -c)" ] || { echo head; exit 1; }
    [ "$(tail -n 1 -- "$1")" = "$(tail -n 1 -- "$2")" ] || { echo tail -n; exit 1; }`;
  const r = await sh(script, [file, scratch]);
  assert.equal(r.code, 0, `${file}: ${r.stdout} ${r.stderr}`);
}

export const FILES = [".log", ".log.graph", ".status", ".files", ".schema", ".bases", ".stale", ".manifest.json"];

// Whatever `look` does, no byte of the storage changes.
export async function unchanged(g, look) {
  const before = snapshot(g.root),
    result = await look();
  assert.deepEqual(difference(before, snapshot(g.root)), [], "a look changed the storage");
  return result;
}
