// SPDX-License-Identifier: Apache-2.0
// Mounts whose storage fails on demand (tests/crash/faults.c).
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { mount } from "./mount.mjs";
import { faultsPath } from "./workspace.mjs";

const E = os.constants.errno;

// A mount whose storage fails as the lines say ("linkat EPERM -"), until works() or the next fails(...lines).
export async function faultyMount(w, ds, ...lines) {
  const faults = path.join(w.dir, "faults"),
    works = () => fs.rmSync(faults, { force: true }),
    fails = (...all) =>
      fs.writeFileSync(faults, all.map((l) => l.replace(/ (E[A-Z0-9]+) /, (_, e) => ` ${E[e]} `)).join("\n"));
  fails(...lines);
  const m = await mount(w, ds, { env: { LD_PRELOAD: await faultsPath(), LANCEFS_FAULTS: faults } });
  return Object.assign(m, { fails, works });
}
