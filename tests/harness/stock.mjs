// SPDX-License-Identifier: Apache-2.0
// The two stock engines, each in a process of its own that stays while a test file runs (loading one takes half a
// second). stock.lance10.read(dir, branch), stock.lance12.op(dir, branch, "add", { rows }), ...
import { after } from "node:test";
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ENGINES } from "../interop/engines.mjs";
import { LIMIT_MS } from "./proc.mjs";

const SERVER = path.join(path.dirname(fileURLToPath(import.meta.url)), "stock_server.mjs");
const running = new Set();

// A client with a process of its own, started at the first request and again after one that died.
export function startStock(engine) {
  let child,
    next = 0,
    rest = "",
    said = "";
  const pending = new Map();

  const settle = (id, fn) => {
    const p = pending.get(id);
    if (!p) return;
    pending.delete(id);
    clearTimeout(p.timer);
    if (pending.size === 0) hold(false);
    fn(p);
  };
  // The process may end this one only while somebody waits for an answer.
  function hold(on) {
    if (!child) return;
    for (const x of [child, child.stdin, child.stdout, child.stderr]) on ? x.ref?.() : x.unref?.();
  }
  function start() {
    rest = said = "";
    const c = spawn(process.execPath, [SERVER, engine], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, RUST_BACKTRACE: "0" },
    });
    c.stdin.on("error", () => {});
    c.stderr.on("data", (d) => {
      said = (said + d).slice(-4000);
    });
    c.stdout.on("data", (d) => {
      const lines = (rest + d).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const { id, value, error } = JSON.parse(line);
        settle(id, (p) => (error === undefined ? p.resolve(value) : p.reject(new Error(`${engine}: ${error}`))));
      }
    });
    c.on("close", (code, signal) => {
      running.delete(c);
      if (child === c) child = undefined;
      for (const id of [...pending.keys()])
        settle(id, (p) => p.reject(new Error(`${engine} ended (${code ?? signal}): ${said.trim().split("\n")[0]}`)));
    });
    running.add(c);
    return c;
  }
  function request(what) {
    child ??= start();
    const id = next++,
      c = child;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        settle(id, (p) => p.reject(new Error(`${engine}: no answer to ${what.what} within ${LIMIT_MS} ms`)));
        c.kill("SIGKILL");
      }, LIMIT_MS);
      pending.set(id, { resolve, reject, timer });
      hold(true);
      c.stdin.write(`${JSON.stringify({ id, ...what })}\n`);
    });
  }
  return {
    engine,
    read: (dir, branch) => request({ what: "read", dir, branch }),
    op: (dir, branch, op, args) => request({ what: "op", dir, branch, op, args }),
    tables: (dir) => request({ what: "tables", dir }),
    create: (dir, rows, options) => request({ what: "create", dir, rows, options }),
    // a table that stays open at the version that it has now: { read(), op(operation, arguments), close() }
    keep: async (dir, branch) => {
      const key = `${next}`;
      await request({ what: "keep", key, dir, branch });
      const use = (op, args) => request({ what: "kept", key, op, args });
      return { read: () => use("read"), op: use, close: () => use("close") };
    },
    stop: () => child?.kill("SIGKILL"),
  };
}

export const stock = Object.fromEntries(ENGINES.map((e) => [e, startStock(e)]));
after(() => {
  for (const c of running) c.kill("SIGKILL");
});
