// SPDX-License-Identifier: Apache-2.0
// What the benchmarks share. Each compares lancefs with a peer in the same run, turn by turn, and prints rows of one
// table; nothing here passes or fails.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { PROJECT } from "../interop/engines.mjs";
import { converse, must, run } from "../harness/proc.mjs";
import { mount } from "../harness/mount.mjs";
import { place, workspace } from "../harness/workspace.mjs";

export const HERE = path.dirname(fileURLToPath(import.meta.url));
export const ROUNDS = Number(process.env.LANCEFS_BENCH_ROUNDS ?? 15);
export const SIZES = (process.env.LANCEFS_BENCH_SIZES ?? "100,2000,20000").split(",").map(Number);
const LIMIT_MS = 3_600_000;

// Milliseconds that fn() takes.
export async function timed(fn) {
  const start = process.hrtime.bigint();
  await fn();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

// fn gets a workspace as the tests have it, and all is taken away when fn is over.
export async function withWorkspace(fn) {
  const ends = [];
  try {
    return await fn(workspace({ after: (end) => ends.push(end) }));
  } finally {
    for (const end of ends) await end();
  }
}

// A generated data set with a mount: { ds, root, storage(branch), m }.
export async function mounted(w, generator, engine, { args = [], options = [] } = {}) {
  const root = path.join(w.dir, generator),
    script = path.join(PROJECT, "tests/interop", `${generator}.mjs`);
  await must(run(process.execPath, [script, root, ...args.map(String)], { env: { LDB: engine }, limitMs: LIMIT_MS }));
  const g = place(path.join(root, "t.lance"), root);
  return { ...g, m: await mount(w, g.ds, { options }) };
}

// A line for a control file; the write's result counts. Synchronous, as nothing else is to be measured.
export function command(file, line) {
  const fd = fs.openSync(file, "w");
  try {
    fs.writeSync(fd, `${line}\n`);
  } catch (e) {
    throw new Error(`echo '${line}' > ${file}: ${e.message}\n${fs.readFileSync(file, "utf8")}`);
  } finally {
    fs.closeSync(fd);
  }
}

// A stock engine that keeps its tables open and times itself: append(dir, branch, rows) -> milliseconds.
export function stockTimer(engine) {
  const c = converse(process.execPath, [path.join(HERE, "stock_timer.mjs"), engine], { limitMs: LIMIT_MS });
  const ask = async (request) => {
    c.say(JSON.stringify(request));
    const { value, error } = JSON.parse(await c.line());
    if (error !== undefined) throw new Error(`${engine}: ${error}`);
    return value;
  };
  return {
    append: (dir, branch, rows) => ask({ what: "append", dir, branch, rows }),
    create: (dir, name) => ask({ what: "create", dir, name }), // -> milliseconds
    fork: (dir, name, from = "main") => ask({ what: "fork", dir, name, from }),
    close: () => c.close(),
  };
}

// The most memory that the daemon ever had, in MiB.
export const peakMemory = (pid) =>
  Number(/VmHWM:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;

const sorted = (list) => [...list].sort((a, b) => a - b);
const at = (list, share) => sorted(list)[Math.min(list.length - 1, Math.floor(list.length * share))];
export const median = (list) => at(list, 0.5);
const spread = (list, digits) => `${at(list, 0.25).toFixed(digits)}-${at(list, 0.75).toFixed(digits)}`;

// Contestants, each a function that gives milliseconds, in turns: [ours, peer] -> [[ms, ...], [ms, ...]]. Who begins
// changes from round to round. between(round) is not measured.
export async function inTurns(contestants, { rounds = ROUNDS, between = async () => {} } = {}) {
  const out = contestants.map(() => []);
  for (let r = 0; r < rounds; r++) {
    await between(r);
    const order = contestants.map((_, i) => (r % 2 ? contestants.length - 1 - i : i));
    for (const i of order) out[i].push(await contestants[i](r));
  }
  return out;
}

const COLUMNS = [
  ["benchmark", 34],
  ["size", 9],
  ["peer", 24],
  ["lancefs", 22],
  ["peer's", 22],
  ["ratio", 18],
  ["wanted", 10],
];
const line = (cells) => cells.map((c, i) => String(c ?? "").padEnd(COLUMNS[i][1])).join(" ").trimEnd();
export function printHead() {
  console.log("medians of runs in turns, and the middle half of them; a ratio is lancefs / peer, round by round");
  console.log(line(COLUMNS.map(([name]) => name)));
}
// One row: times of both in the same unit, round by round.
export function report({ name, size, peer, ours, theirs, unit = "ms", wanted = "" }) {
  const ratios = ours.map((x, i) => x / theirs[i]);
  const value = (list, digits, u = "") =>
    `${median(list).toFixed(digits)}${u}${list.length > 1 ? ` (${spread(list, digits)})` : ""}`;
  console.log(line([name, size, peer, value(ours, 1, ` ${unit}`), value(theirs, 1, ` ${unit}`), value(ratios, 2), wanted]));
}

// Is a program there?
export const there = async (program) => (await run("sh", ["-c", 'command -v "$1"', "sh", program])).code === 0;
