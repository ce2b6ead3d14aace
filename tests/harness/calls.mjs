// SPDX-License-Identifier: Apache-2.0
// Which calls the daemon makes: those that open a file, and those that change the file system. Counted by the library
// that the crash tests stop it with.
import fs from "node:fs";
import path from "node:path";
import { mount } from "./mount.mjs";
import { stopperPath } from "./workspace.mjs";

let count = 0;

// Names that differ from run to run.
const plain = (file) => file.replace(/\d+-[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d{6,}/g, "#");

function calls(file, root) {
  if (!fs.existsSync(file)) return [];
  return fs
    .readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const [, call, what] = /^(?:\d+ )?(\S+) (.*)$/.exec(line),
        name = path.isAbsolute(what) ? path.relative(root, what) : what;
      return { call, file: name, kind: `${call} ${plain(name)}` };
    });
}

// A mount like mount(), and `during(fn)`: what fn() made the daemon open and change, in order, as
// { value, opens: [{ call, file, kind }], changes: [the same] }. Files are relative to the data set; `kind` leaves out
// what is random in a name.
export async function watchedMount(w, ds, { env, ...options } = {}) {
  const at = path.join(w.dir, `calls-${count++}`),
    log = { opens: `${at}.opens`, changes: `${at}.changes` },
    armed = `${at}.armed`;
  const m = await mount(w, ds, {
    ...options,
    env: {
      ...env,
      LD_PRELOAD: await stopperPath(),
      LANCEFS_STOP_ARMED: armed,
      LANCEFS_STOP_COUNT: log.changes,
      LANCEFS_STOP_OPENS: log.opens,
    },
  });
  const root = fs.realpathSync(ds.ds ?? ds);
  async function during(fn) {
    for (const file of Object.values(log)) fs.rmSync(file, { force: true });
    fs.writeFileSync(armed, "0\n");
    const value = await fn();
    fs.rmSync(armed);
    return { value, opens: calls(log.opens, root), changes: calls(log.changes, root) };
  }
  return { ...m, during };
}
