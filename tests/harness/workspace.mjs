// SPDX-License-Identifier: Apache-2.0
// What a test needs around it: a scratch folder that is always removed, what must be undone (in reverse order, whatever
// happened), the generated data sets, and the small C helpers.
import { after } from "node:test";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ENGINES, PROJECT } from "../interop/engines.mjs";
import { must, run } from "./proc.mjs";

export { ENGINES, PROJECT };
export const BUILD = path.join(PROJECT, "build");
export const LANCEFS = path.resolve(process.env.LANCEFS ?? path.join(BUILD, "lancefs"));

// A scratch folder for one test (`t` is node:test's context). defer(fn) undoes things before the folder goes.
export function workspace(t) {
  const dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "lancefs-"));
  const undo = [];
  t.after(async () => {
    const errors = [];
    for (const fn of undo.reverse()) await fn().catch((e) => errors.push(e));
    // A mount that could not be taken away must not be emptied: stay on this file system.
    await run("rm", ["-rf", "--one-file-system", dir]);
    if (errors.length)
      throw errors.length === 1 ? errors[0] : new AggregateError(errors, errors.map((e) => e.message).join("; "));
  });
  return { dir, defer: (fn) => undo.push(fn) };
}

// Generated data sets of this test file, kept to be set back: base paths are absolute, so a data set must be used where
// it was made. One place for each generator; a test that wants it while it is in use gets one of its own.
let cache;
const inUse = new Set();
after(() => (cache ? run("rm", ["-rf", "--one-file-system", cache]) : undefined));

async function make(generator, engine, root, args) {
  await must(
    run(process.execPath, [path.join(PROJECT, "tests/interop", `${generator}.mjs`), root, ...args], {
      env: { LDB: engine },
    }),
  );
}
async function restored(w, generator, engine, args) {
  cache ??= fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "lancefs-data-"));
  const root = path.join(cache, [generator, engine, ...args].join("-")),
    saved = `${root}.saved`;
  if (inUse.has(root)) return undefined;
  inUse.add(root);
  w.defer(async () => {
    inUse.delete(root);
  });
  await must(run("rm", ["-rf", "--one-file-system", root]));
  if (fs.existsSync(saved)) await must(run("cp", ["-a", saved, root]));
  else {
    await make(generator, engine, root, args);
    await must(run("cp", ["-a", root, saved]));
  }
  return root;
}

// The data sets of a generator of tests/interop, fresh. { root, ds, storage(branch), reset() }: ds is root/<name>.lance;
// reset() sets all of root back to what was generated.
export async function generate(w, generator, engine, { name = "t", args = [] } = {}) {
  const shared = await restored(w, generator, engine, args),
    root = shared ?? path.join(w.dir, generator);
  if (!shared) await make(generator, engine, root, args);
  const reset = async () => {
    if (!shared) throw new Error("only the first of one kind in a test can be set back");
    await must(run("rm", ["-rf", "--one-file-system", root]));
    await must(run("cp", ["-a", `${root}.saved`, root]));
  };
  return { ...place(path.join(root, `${name}.lance`), root), reset };
}

// A data set by its directory.
export const place = (ds, root = path.dirname(ds)) => ({
  root,
  ds,
  storage: (branch) => (branch === "main" ? ds : path.join(ds, "tree", branch)),
});

// Compiles a C helper of the tests once and gives its path. Renamed into place, as test files run at the same time.
async function compile(source, output, flags = []) {
  const from = path.join(PROJECT, "tests", source),
    to = path.join(BUILD, "tests", output);
  const sources = [from, ...fs.readdirSync(path.dirname(from)).filter((f) => f.endsWith(".h")).map((f) => path.join(path.dirname(from), f))];
  if (fs.existsSync(to) && sources.every((f) => fs.statSync(to).mtimeMs >= fs.statSync(f).mtimeMs)) return to;
  fs.mkdirSync(path.dirname(to), { recursive: true });
  const made = `${to}.${process.pid}`;
  await must(
    run(process.env.CC ?? "cc", ["-std=c17", "-O1", "-Wall", "-Wextra", "-Werror", ...flags, from, "-o", made]),
  );
  fs.renameSync(made, to);
  return to;
}
let probeBinary;
export const probePath = () => (probeBinary ??= compile("harness/probe.c", "probe"));
export const probe = async (...args) => run(await probePath(), args);
export const faultsPath = () => compile("crash/faults.c", "faults.so", ["-shared", "-fPIC"]);
export const recorderPath = () => compile("crash/recorder.c", "recorder.so", ["-shared", "-fPIC"]);
export const readerPath = () => compile("bench/reader.c", "reader");
export const noBackingPath = () => compile("harness/no_backing.c", "no_backing.so", ["-shared", "-fPIC"]);
export const handlesPath = () => compile("life/handles.c", "handles");
export const stopperPath = () => compile("crash/stopper.c", "stopper.so", ["-shared", "-fPIC"]);

// Every file below a directory: Map of relative path -> hash of the bytes ("dir" for directories, the target for links).
export function snapshot(dir) {
  const out = new Map();
  const walk = (rel) => {
    for (const e of fs.readdirSync(path.join(dir, rel), { withFileTypes: true })) {
      const p = path.join(rel, e.name),
        full = path.join(dir, p);
      if (e.isDirectory()) {
        out.set(p, "dir");
        walk(p);
      } else if (e.isSymbolicLink()) out.set(p, `-> ${fs.readlinkSync(full)}`);
      else out.set(p, createHash("sha1").update(fs.readFileSync(full)).digest("hex"));
    }
  };
  walk("");
  return out;
}

// What differs between two snapshots, one line each.
export function difference(before, after) {
  const lines = [];
  for (const [p, h] of before)
    if (!after.has(p)) lines.push(`gone: ${p}`);
    else if (after.get(p) !== h) lines.push(`changed: ${p}`);
  for (const p of after.keys()) if (!before.has(p)) lines.push(`new: ${p}`);
  return lines.sort();
}

// Skips a test when a program is missing, and says so.
export async function needs(t, program) {
  const there = (await run("sh", ["-c", 'command -v "$1"', "sh", program])).code === 0;
  if (!there) t.skip(`${program} is not installed`);
  return there;
}
