// SPDX-License-Identifier: Apache-2.0
// What is installed, and what is said about the programs: help, versions, man pages, completion, the library's headers. Each
// list of options is compared with the program's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { parseAnswer } from "../harness/control.mjs";
import { isMounted, launch } from "../harness/mount.mjs";
import { converse, must, run, sh } from "../harness/proc.mjs";
import { OVERLAP } from "../harness/rows.mjs";
import { checkStorage } from "../harness/tip.mjs";
import { generate, needs, probePath, PROJECT, workspace } from "../harness/workspace.mjs";

const text = (...parts) => fs.readFileSync(path.join(PROJECT, ...parts), "utf8"),
  all = (s, re) => [...s.matchAll(re)].map((m) => m[1]),
  sorted = (list) => [...new Set(list)].sort();

// Words of fstab(5) that mean nothing to the program, which drops them.
const FSTAB = ["defaults", "auto", "noauto", "user", "nouser", "users", "nofail", "_netdev"];
// The program's own tables.
const own = all(text("fuse", "options.c"), /FUSE_OPT_KEY\("([^"]+)"/g).filter((o) => !FSTAB.includes(o)),
  mountOptions = sorted(own.filter((o) => !o.startsWith("-"))),
  letters = sorted([...own.filter((o) => /^-\w$/.test(o)), "-o"]),
  fsck = text("fsck", "main.c"),
  fsckOptions = sorted([
    ...[.../getopt_long\(argc, argv, "(\w+)"/.exec(fsck)[1]].map((c) => `-${c}`),
    ...all(fsck, /\{"(\w+)", no_argument/g).map((o) => `--${o}`),
  ]);
const name = (o) => o.replace(/=.*/, "=");

test("man pages: no complaint of groff or mandoc, and each option of the programs, no other", async (t) => {
  for (const page of fs.readdirSync(path.join(PROJECT, "man"))) {
    const file = path.join(PROJECT, "man", page);
    if (await needs(t, "groff")) {
      const r = await must(run("groff", ["-man", "-ww", "-z", "-Tutf8", file]));
      assert.equal(r.stderr, "", page);
    }
    if ((await sh("command -v mandoc")).code === 0) {
      const r = await run("mandoc", ["-Tlint", "-Wwarning", file]);
      assert.equal(r.stdout, "", page);
    }
  }
  const page = text("man", "lancefs.1"),
    listed = all(page, /^\.TP\n\.BI? (.+)$/gm).map((l) => l.replaceAll("\\-", "-").split(" ")[0]);
  assert.deepEqual(sorted(listed.filter((o) => !o.startsWith("-")).map(name)), mountOptions);
  assert.deepEqual(sorted(listed.filter((o) => o.startsWith("-"))), letters);
  const check = text("man", "fsck.lancefs.8").replaceAll("\\-", "-");
  assert.deepEqual(sorted(all(check, /(?:^\.(?:B|BR) |is the same|\n)(--?\w[\w-]*)/gm)), fsckOptions);
  const files = all(text("man", "lancefs-control.5"), /^\.TP\n\.B (\.\S+)$/gm),
    verbs = all(text("core", "verbs", "verbs.c"), /^ {4}\{"(\.[\w-]+)", LFS_VERB/gm);
  assert.deepEqual(sorted(files), sorted(verbs));
});

test("-h fits one screen and names every option; -V names the versions", async (t) => {
  const w = workspace(t),
    lines = (await launch(w, ["-h"])).stdout.trimEnd().split("\n");
  assert.ok(lines.length <= 24 && lines.every((l) => l.length < 80), `${lines.length} lines`);
  for (const o of [...mountOptions.filter((x) => !["passthrough=", "subtype=", "debug"].includes(x)), ...letters])
    assert.ok(lines.some((l) => l.includes(o)), `${o} in -h`);
  const version = (await launch(w, ["-V"])).stdout,
    engines = all(text("tests", "interop", "setup.sh"), /lance1\d:([\d.]+)/g);
  assert.match(version, new RegExp(`^lancefs ${/LFS_VERSION "(.*)"/.exec(text("core", "version.h"))[1]}\n`));
  const fuse = (await must(run("pkg-config", ["--modversion", "fuse3"]))).stdout.trim();
  assert.match(version, new RegExp(`^libfuse ${fuse.replaceAll(".", "\\.")}$`, "m"));
  assert.equal(engines.length, 2);
  for (const e of engines) assert.ok(version.includes(e), `${e}: ${version}`);
});

test("completion: the same options in all shells", async (t) => {
  const w = workspace(t),
    complete = async (...words) =>
      (
        await must(
          sh(
            `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _$\{1//./_}; printf '%s\\n' "$\{COMPREPLY[@]}"`,
            [path.join(PROJECT, "scripts/install/lancefs.bash"), ...words],
            { cwd: w.dir },
          ),
        )
      ).stdout
        .trim()
        .split("\n");
  assert.deepEqual(sorted(await complete("lancefs", "-o", "")), mountOptions);
  assert.deepEqual(await complete("lancefs", "-o", "ro,hooks"), ["ro,hooks=", "ro,hooks_timeout="]);
  assert.deepEqual(await complete("lancefs", "-o", "mode", "=", "c"), ["copy"]);
  assert.deepEqual(sorted(await complete("lancefs", "-")), letters);
  assert.deepEqual(sorted(await complete("fsck.lancefs", "-")), fsckOptions);
  fs.mkdirSync(path.join(w.dir, "photos.lance"));
  assert.deepEqual(await complete("lancefs", "ph"), ["photos.lance"]);
  const zsh = text("scripts/install/_lancefs"),
    list = /options=\(([^]*?)\n\)/.exec(zsh)[1];
  assert.deepEqual(sorted(all(list, /'(\w+)(?=[[:])/g)), sorted(mountOptions.map((o) => o.replace("=", ""))));
  const fish = text("scripts/install/lancefs.fish"),
    words = /-s o -x -d 'mount options' -a '([^']*)'/.exec(fish)[1].split(" ");
  assert.deepEqual(sorted(words), mountOptions);
  assert.deepEqual(sorted(all(fish, /^complete -c fsck\.lancefs.* -s (\w)/gm).map((c) => `-${c}`)), fsckOptions.filter((o) => !o.startsWith("--")));
  for (const [shell, file] of [["zsh", "_lancefs"], ["fish", "lancefs.fish"]])
    if ((await sh(`command -v ${shell}`)).code === 0)
      await must(run(shell, ["-n", path.join(PROJECT, "scripts/install", file)]));
    else t.diagnostic(`${shell} is not installed: its file is only compared`);
});

const make = (target, dest) => must(run("make", ["-s", "-C", PROJECT, target, "PREFIX=/usr", `DESTDIR=${dest}`]));
const filesBelow = (dir) =>
  fs.readdirSync(dir, { recursive: true, withFileTypes: true }).filter((e) => !e.isDirectory());

test("make install into a DESTDIR: mount by its helper's name, merge by the library alone, uninstall leaves nothing", async (t) => {
  const w = workspace(t),
    dest = path.join(w.dir, "dest"),
    at = (...p) => path.join(dest, "usr", ...p),
    g = await generate(w, "overlap_deletes", "lance12");
  await make("install", dest);
  for (const file of [at("lib/pkgconfig/liblancefs.pc"), at("lib/systemd/system/lancefs@.service")]) {
    const said = fs.readFileSync(file, "utf8");
    assert.ok(!said.includes("@P") && !said.includes("@BINDIR@") && !said.includes(dest), said);
  }
  // a mount as mount(8) makes it: mount.fuse.lancefs SOURCE TARGET -o OPTIONS
  const mnt = path.join(w.dir, "mnt");
  fs.mkdirSync(mnt);
  w.defer(() => (isMounted(mnt) ? run("fusermount3", ["-uz", mnt]) : Promise.resolve()));
  await must(sh('"$1" "$2" "$3" -o ro,noauto,user > /dev/null 2>&1 < /dev/null', [at("sbin/mount.fuse.lancefs"), g.ds, mnt]));
  assert.deepEqual((await must(run("ls", [path.join(mnt, "tree")]))).stdout.split(/\s+/).filter(Boolean), ["feature", "main"]);
  await must(run("fusermount3", ["-u", mnt]));
  assert.equal((await run(at("sbin/fsck.lancefs"), [g.ds])).code, 0);

  // the library: its headers compile together (those of one layer's inside come with their own), and a program merges
  const flags = (await must(run("pkg-config", [`--define-variable=prefix=${at("")}`, `--define-variable=libdir=${at("lib")}`, `--define-variable=includedir=${at("include")}`, "--cflags", "--libs", "liblancefs"], { env: { PKG_CONFIG_PATH: at("lib/pkgconfig") } }))).stdout.trim().split(/\s+/),
    program = path.join(w.dir, "merge");
  const headers = filesBelow(at("include/lancefs")).map((e) => path.relative(at("include/lancefs"), path.join(e.parentPath ?? e.path, e.name)));
  assert.ok(headers.includes("verbs/verbs.h") && headers.includes("table.pb-c.h"), headers.join(" "));
  fs.writeFileSync(path.join(w.dir, "all.c"), headers.filter((h) => !h.endsWith("_impl.h")).map((h) => `#include "${h}"\n`).join(""));
  await must(run("cc", ["-std=gnu17", "-fsyntax-only", "-Werror", path.join(w.dir, "all.c"), ...flags.filter((f) => /^-[ID]/.test(f))]));
  await must(run("cc", ["-std=gnu17", path.join(PROJECT, "tests/install/merge.c"), "-o", program, ...flags]));
  const answer = parseAnswer((await must(run(program, [g.ds, "main", "feature"]))).stdout);
  assert.equal(answer.result, "merged", answer.text);
  await checkStorage(g, "main", OVERLAP.union);

  if ((await sh("command -v systemd-analyze")).code === 0) {
    const r = await run("systemd-analyze", ["verify", `--root=${dest}`, "lancefs@x.service"]);
    assert.ok(!/Unknown|Failed to parse|Invalid/i.test(r.stderr), r.stderr);
  } else t.diagnostic("systemd-analyze is not installed: the unit is not checked");
  await make("uninstall", dest);
  assert.deepEqual(filesBelow(dest).map((e) => e.name), []);
});

test("a service manager is told that the mount answers, and not before", async (t) => {
  const w = workspace(t),
    g = await generate(w, "siblings", "lance12"),
    mnt = path.join(w.dir, "mnt"),
    socket = path.join(w.dir, "notify");
  fs.mkdirSync(mnt);
  w.defer(() => (isMounted(mnt) ? run("fusermount3", ["-uz", mnt]) : Promise.resolve()));
  const manager = converse(await probePath(), ["receive", socket]);
  assert.equal(await manager.line(), "bound");
  const env = { NOTIFY_SOCKET: socket },
    wrong = await launch(w, [path.join(w.dir, "none.lance"), mnt], { env });
  assert.equal(wrong.code, 1);
  assert.equal((await launch(w, [g.ds, mnt], { env })).code, 0);
  assert.equal(await manager.line(), "READY=1", "the first message, though one attempt failed before");
  await must(run("fusermount3", ["-u", mnt]));
});
