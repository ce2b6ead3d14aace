// SPDX-License-Identifier: Apache-2.0
// A data set mounted by the program under test, and taken away again whatever happens. LANCEFS names the program.
// A report of a sanitizer fails the test that the daemon ran in.
import fs from "node:fs";
import path from "node:path";
import { run } from "./proc.mjs";
import { LANCEFS, probe, probePath } from "./workspace.mjs";

let count = 0;

// Sanitizers write beside the test's files; what the environment says besides is kept.
function sanitizerEnv(prefix) {
  const add = (name, options) => [process.env[name], ...options].filter(Boolean).join(":");
  return {
    ASAN_OPTIONS: add("ASAN_OPTIONS", [`log_path=${prefix}`, "verify_asan_link_order=0"]),
    UBSAN_OPTIONS: add("UBSAN_OPTIONS", [`log_path=${prefix}`, "print_stacktrace=1"]),
    LSAN_OPTIONS: add("LSAN_OPTIONS", [`log_path=${prefix}`]),
    TSAN_OPTIONS: add("TSAN_OPTIONS", [`log_path=${prefix}`]),
  };
}
function sanitizerReports(prefix) {
  const dir = path.dirname(prefix);
  return fs
    .readdirSync(dir)
    .filter((f) => f.startsWith(path.basename(prefix)))
    .map((f) => fs.readFileSync(path.join(dir, f), "utf8").split("\n").slice(0, 60).join("\n"))
    .filter((text) => text.trim());
}

export const isMounted = (mnt) =>
  fs
    .readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .some((l) => l.split(" ")[4] === escapeMount(mnt));
const escapeMount = (p) => p.replace(/[ \t\n\\]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, "0")}`);

// The process that serves a mount: it was started with the mount point as an argument, which no other process has.
export function daemonOf(mnt) {
  for (const pid of fs.readdirSync("/proc").filter((x) => /^\d+$/.test(x))) {
    try {
      if (path.basename(fs.readlinkSync(`/proc/${pid}/exe`)) !== path.basename(fs.realpathSync(LANCEFS))) continue;
      if (fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(mnt)) return Number(pid);
    } catch {
      /* it has just ended, or is a kernel thread */
    }
  }
  return undefined;
}

// Starts lancefs with whatever arguments and waits for the command (not the daemon) to end: { code, stdout, stderr }.
// Its output goes to files: a daemon that kept the pipe open would hold the caller up.
export async function launch(w, args, { env } = {}) {
  const to = path.join(w.dir, `launch-${count++}`);
  const r = await run(
    "sh",
    ["-c", 'out=$1; shift; exec "$@" >"$out.out" 2>"$out.err" </dev/null', "sh", to, LANCEFS, ...args],
    { env },
  );
  return { ...r, stdout: fs.readFileSync(`${to}.out`, "utf8"), stderr: fs.readFileSync(`${to}.err`, "utf8") };
}

// Takes a mount away at once, and its daemon with it.
async function force(mnt, pid) {
  if (isMounted(mnt)) await run("fusermount3", ["-uz", mnt], { limitMs: 10_000 });
  if (pid === undefined || !fs.existsSync(`/proc/${pid}`)) return;
  const gone = await run(await probePath(), ["wait-exit", String(pid)], { limitMs: 10_000 });
  if (gone.code === 0) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    /* it went in the meantime */
  }
  throw new Error(`the daemon ${pid} did not end within 10 s after its mount was taken away`);
}

// Mounts `ds` (a directory, or what generate() gave): lancefs returns when the mount answers.
export async function mount(w, ds, { options = [], env = {}, at } = {}) {
  const dataset = ds.ds ?? ds,
    id = count++,
    mnt = at ?? path.join(w.dir, `mnt-${id}`);
  const log = path.join(w.dir, `log-${id}`),
    reports = path.join(w.dir, `sanitizer-${id}`);
  try {
    fs.mkdirSync(mnt, { recursive: true });
  } catch (e) {
    if (!isMounted(mnt)) throw e; // a dead mount lies there: lancefs's business
  }
  const flags = ["log_file=" + log, ...options].flatMap((o) => ["-o", o]);
  let pid;
  w.defer(async () => {
    await force(mnt, pid ?? daemonOf(mnt));
    noReports();
  });
  function noReports() {
    const found = sanitizerReports(reports);
    if (found.length) throw new Error(`the daemon's sanitizer reports:\n${found.join("\n")}`);
  }
  const r = await launch(w, [...flags, dataset, mnt], { env: { ...sanitizerEnv(reports), ...env } });
  if (r.code !== 0) throw new Error(`lancefs ${dataset}: exit ${r.code ?? r.signal}: ${r.stderr.trim()}`);
  if (!isMounted(mnt)) throw new Error(`lancefs returned 0 but nothing is mounted at ${mnt}`);
  pid = daemonOf(mnt);
  if (pid === undefined) throw new Error("no daemon with the mount point on its command line");

  return {
    ds: dataset,
    mnt,
    pid,
    dataset: ds,
    tree: (branch, ...rest) => path.join(mnt, "tree", branch, ...rest),
    table: (branch) => path.join(mnt, "tables", `${branch.replaceAll("/", "..")}.lance`),
    log: () => (fs.existsSync(log) ? fs.readFileSync(log, "utf8") : ""),
    isMounted: () => isMounted(mnt),
    // A clean unmount; resolves when the daemon is gone and had nothing to complain about.
    async unmount() {
      const u = await run("fusermount3", ["-u", mnt]);
      if (u.code !== 0)
        throw new Error(
          `fusermount3 -u: ${u.stderr.trim()} (held by ${holders(mnt).join(", ") || "nobody that shows"})`,
        );
      const gone = await probe("wait-exit", String(pid));
      if (gone.code !== 0) throw new Error("the daemon did not end after the unmount");
      noReports();
    },
    // SIGKILL, and the dead mount removed.
    async kill() {
      try {
        process.kill(pid, "SIGKILL");
      } catch (e) {
        if (e.code !== "ESRCH") throw e;
      }
      await probe("wait-exit", String(pid));
      await force(mnt);
    },
  };
}

// Which processes have a file of the mount open: for the message when it is busy.
function holders(mnt) {
  const out = [];
  for (const pid of fs.readdirSync("/proc").filter((x) => /^\d+$/.test(x))) {
    try {
      for (const fd of fs.readdirSync(`/proc/${pid}/fd`)) {
        const target = fs.readlinkSync(`/proc/${pid}/fd/${fd}`);
        if (target === mnt || target.startsWith(`${mnt}/`)) out.push(`${pid} ${target}`);
      }
    } catch {
      /* it has just ended */
    }
  }
  return out;
}
