// SPDX-License-Identifier: Apache-2.0
// The stock engines as processes that stay while histories run. start("lance10") gives { create, commit, fork, drop,
// read, stop }, each of which takes one object and resolves to the server's answer.
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { LIMIT_MS } from "../harness/proc.mjs";

const SERVER = path.join(path.dirname(fileURLToPath(import.meta.url)), "engine_server.mjs");

export function start(engine) {
  const child = spawn(process.execPath, [SERVER, engine], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, RUST_BACKTRACE: "0" },
  });
  const pending = new Map();
  let next = 0,
    rest = "",
    said = "";
  const settle = (id, how, value) => {
    const p = pending.get(id);
    pending.delete(id);
    clearTimeout(p?.timer);
    p?.[how](value);
  };
  child.stdin.on("error", () => {});
  child.stderr.on("data", (d) => {
    said = (said + d).slice(-2000);
  });
  child.stdout.on("data", (d) => {
    const lines = (rest + d).split("\n");
    rest = lines.pop();
    for (const { id, value, error } of lines.map((l) => JSON.parse(l)))
      error === undefined ? settle(id, "resolve", value) : settle(id, "reject", new Error(`${engine}: ${error}`));
  });
  child.on("close", (code, signal) => {
    for (const id of [...pending.keys()])
      settle(id, "reject", new Error(`${engine} ended (${code ?? signal}): ${said.trim().split("\n")[0]}`));
  });
  const request = (what) => (args) =>
    new Promise((resolve, reject) => {
      const id = next++;
      const timer = setTimeout(() => {
        settle(id, "reject", new Error(`${engine}: no answer to ${what} within ${LIMIT_MS} ms`));
        child.kill("SIGKILL");
      }, LIMIT_MS);
      pending.set(id, { resolve, reject, timer });
      child.stdin.write(`${JSON.stringify({ id, what, ...args })}\n`);
    });
  const out = { engine, stop: () => child.stdin.end() };
  for (const what of ["create", "commit", "fork", "drop", "read"]) out[what] = request(what);
  return out;
}
