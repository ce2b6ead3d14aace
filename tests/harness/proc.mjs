// SPDX-License-Identifier: Apache-2.0
// Child processes with a time limit. The tests touch a mount through these only, so that a mount that hangs ends as a
// failed test and not as a hung run.
import { spawn } from "node:child_process";

export const LIMIT_MS = Number(process.env.LANCEFS_TEST_LIMIT_MS ?? 60_000);

// A bash whose standard input is a socket, as node's pipes are, takes itself for a login from elsewhere and reads its user's
// start files, whatever they do, unless it runs within another shell.
const ENV = { ...process.env, SHLVL: "2" };

// Kills the whole group of a child that was spawned as its leader.
export function killGroup(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (e) {
    if (e.code !== "ESRCH") throw e;
  }
}

// Runs a program: { code, signal, stdout, stderr, timedOut }. Never rejects for what the program does.
export function run(program, args, { input, env, cwd, limitMs = LIMIT_MS, encoding = "utf8" } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...ENV, ...env },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const out = [],
      err = [];
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child);
    }, limitMs);
    child.on("error", (e) => {
      clearTimeout(timer);
      reject(e);
    });
    child.stdout.on("data", (d) => out.push(d));
    child.stderr.on("data", (d) => err.push(d));
    child.stdin.on("error", () => {}); // the program need not read what it is given
    child.stdin.end(input);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const text = (x) => (encoding ? Buffer.concat(x).toString(encoding) : Buffer.concat(x));
      resolve({ code, signal, timedOut, stdout: text(out), stderr: Buffer.concat(err).toString() });
    });
  });
}

// A shell script; its arguments are "$1", "$2", ... bash by default, since its messages name the errno.
export const sh = (script, args = [], options = {}) =>
  run(options.shell ?? "bash", ["-c", script, "sh", ...args], options);

// The same, and anything but exit status 0 is an error that tells what was said.
export async function must(promise) {
  const r = await promise;
  if (r.code !== 0)
    throw new Error(
      `exit ${r.code ?? r.signal}${r.timedOut ? " (timed out)" : ""}: ${r.stderr.trim() || String(r.stdout).trim()}`,
    );
  return r;
}

// A program that is spoken to while it runs: lines() waits for the next line of its output.
export function converse(program, args, { env, cwd, limitMs = LIMIT_MS } = {}) {
  const child = spawn(program, args, {
    cwd,
    env: { ...ENV, ...env },
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const waiting = [],
    lines = [];
  let rest = "",
    stderr = "",
    over;
  const ended = new Promise((resolve) =>
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      over = new Error(`${program} ended (${code ?? signal}): ${stderr}`);
      for (const w of waiting.splice(0)) w.reject(over);
      resolve({ code, signal, stderr });
    }),
  );
  const timer = setTimeout(() => killGroup(child), limitMs);
  child.stdin.on("error", () => {});
  child.stderr.on("data", (d) => {
    stderr += d;
  });
  child.stdout.on("data", (d) => {
    const parts = (rest + d).split("\n");
    rest = parts.pop();
    for (const line of parts) waiting.length ? waiting.shift().resolve(line) : lines.push(line);
  });
  return {
    pid: child.pid,
    ended,
    say: (line) => child.stdin.write(`${line}\n`),
    line: () =>
      new Promise((resolve, reject) => {
        if (lines.length) resolve(lines.shift());
        else if (over) reject(over);
        else waiting.push({ resolve, reject });
      }),
    close: () => {
      child.stdin.end();
      return ended;
    },
    kill: (signal = "SIGKILL") => {
      child.kill(signal);
      return ended;
    },
  };
}
