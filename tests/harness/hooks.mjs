// SPDX-License-Identifier: Apache-2.0
// A directory of hooks, and hooks that wait for the test: what happens meanwhile is an event, not a matter of time.
import fs from "node:fs";
import path from "node:path";
import { must, run } from "./proc.mjs";

// -o hooks=: `set(name, script)` makes pre-merge or post-merge a shell script. Each run appends what it got on standard input
// to a file, a line a run; `asked(name)` gives them parsed.
export function hooksIn(w) {
  const dir = path.join(w.dir, "hooks");
  fs.mkdirSync(dir, { mode: 0o755 });
  const got = (name) => path.join(w.dir, `${name}.got`);
  return {
    dir,
    option: `hooks=${dir}`,
    file: (name) => path.join(dir, name),
    set(name, script) {
      fs.writeFileSync(path.join(dir, `${name}.new`), `#!/bin/sh\ncat >> '${got(name)}'\n${script}\n`, { mode: 0o755 });
      fs.renameSync(path.join(dir, `${name}.new`), path.join(dir, name));
    },
    asked: (name) =>
      fs.existsSync(got(name)) ? fs.readFileSync(got(name), "utf8").trim().split("\n").map((l) => JSON.parse(l)) : [],
  };
}

// Lines for a hook's script that stop it until the test says go on: `reached()` is done when it stands there.
export async function barrier(w, name) {
  const here = path.join(w.dir, `${name}.here`),
    on = path.join(w.dir, `${name}.on`);
  await must(run("mkfifo", [here, on]));
  return {
    script: `echo here > '${here}'; read word < '${on}'`,
    reached: () => must(run("cat", [here])),
    release: () => must(run("sh", ["-c", 'echo on > "$1"', "sh", on])),
  };
}
