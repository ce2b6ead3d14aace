// SPDX-License-Identifier: Apache-2.0
// Everyday tools that write files, at a control file: editors, copies, interpreters. Each is one whole command whose exit
// status is the command's, or nothing at all and an exit status that says so; none hangs, none runs a command twice, and none
// leaves a file anywhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { load, tip } from "../interop/manifest.mjs";
import { answerOf, ctl, errnoIn } from "../harness/control.mjs";
import { must, run, sh } from "../harness/proc.mjs";
import { OVERLAP } from "../harness/rows.mjs";
import { checkTip, control, mounted } from "../harness/tip.mjs";
import { difference, needs, snapshot } from "../harness/workspace.mjs";

const ENGINE = "lance12"; // the words of a command do not depend on who wrote the data
const LIMIT = { limitMs: 20_000 }; // a tool that waits for something that never comes

// "$1" is the control file, "$2" a scratch folder with `line` (a command with its newline) and `cut` (without), WORD the word.
const PERL = (flags, code) => `perl -MFcntl -MIO::Handle -e 'sysopen F, $ARGV[0], ${flags} or die; ${code}' "$1"`;
const PYTHON = (code) => `python3 -c 'import os,sys\nf=sys.argv[1]; w=sys.argv[2].encode()\n${code.replaceAll("'", '"')}' "$1" WORD`;
// vim that could not do what it was told waits for commands: on standard error when its input has ended, or at the question
// about a swap file that another one left. `cq` is its way out, and no swap file is made.
const VIM = (...commands) => `vim -N -u NONE -n -es ${commands.map((c) => `-c '${c}'`).join(" ")} -c cq "$1" 2> "$2/said"`;
const WRITE = {
  "vim, :wq!": ["vim", VIM("%d", "call setline(1, \"WORD\")", "wq!"), { fails: true }],
  "vim, :w and :q": ["vim", VIM("%d", "call setline(1, \"WORD\")", "set nowritebackup", "w", "q")],
  "vim with a backup beside it": ["vim", VIM("%d", "call setline(1, \"WORD\")", "set backup backupcopy=no", "wq!")],
  "vim, :saveas!": ["vim", `vim -N -u NONE -n -es -c "saveas! $1" -c q -c cq "$2/line" 2> "$2/said"`, { fails: true }],
  "vim as it is set up, in a terminal": ["vim", `printf 'ggdGiWORD\\033:wq!\\r\\r:cq!\\r' | TERM=xterm script -qec "vim -c 'set directory=$2' '$1'" /dev/null > /dev/null`],
  "ex, x!": ["ex", `printf '%%s/.*/WORD/\\n1,$-1d\\nx!\\ncq\\n' | ex -n -s "$1" 2> "$2/said"`, { fails: true }],
  "ed, w": ["ed", `printf ',d\\na\\nWORD\\n.\\nw\\nq\\n' | ed -s "$1"`, { fails: true }],
  "ed, W": ["ed", `printf 'a\\nWORD\\n.\\nW %s\\nq\\n' "$1" | ed -s`],
  "sed w": ["sed", `sed -n "w $1" "$2/line"`],
  "awk in two prints": ["awk", `awk -v f="$1" '{ printf "%s", $0 > f; printf "\\n" > f }' "$2/line"`, { fails: true }],
  "perl, truncating": ["perl", `perl -e 'open F, ">", $ARGV[0] or die; print F "WORD\\n" or die; close F or die "$!"' "$1"`, { fails: true }],
  "perl, appending in pieces": ["perl", `perl -e 'open F, ">>", $ARGV[0] or die; F->autoflush; for (split //, "WORD\\n") { print F $_ or die "$!" } close F or die' "$1"`, { fails: true }],
  "perl, for reading and writing": ["perl", `perl -e 'open F, "+<", $ARGV[0] or die; syswrite F, "WORD\\n" or die "$!"; close F or die' "$1"`],
  "as sponge does: read all, then truncate and write": ["perl", `perl -e '@x = <STDIN>; open F, ">", $ARGV[0] or die; print F @x; close F or die "$!"' "$1" < "$2/line"`],
  "perl, byte by byte": ["perl", PERL("O_WRONLY", 'for (split //, "WORD\\n") { syswrite F, $_ or die "$!" }'), { fails: true }],
  "perl, no newline, in two halves": ["perl", PERL("O_WRONLY", '$w = "WORD"; syswrite F, substr $w, 0, 2; syswrite F, substr $w, 2; close F or die "$!"'), { fails: true }],
  "perl, O_TRUNC, O_CREAT, O_SYNC, fsync": ["perl", PERL("O_WRONLY|O_TRUNC|O_CREAT|O_SYNC", 'syswrite F, "WORD\\n" or die "$!"; F->sync or die "$!"')],
  "perl, under flock": ["perl", PERL("O_WRONLY", 'use Fcntl ":flock"; flock F, LOCK_EX or die; syswrite F, "WORD\\n" or die "$!"')],
  "python, write and close": ["python3", PYTHON("open(f, 'wb').write(w + b'\\n')")],
  "python, writev of three pieces": ["python3", PYTHON("o = os.open(f, os.O_WRONLY|os.O_APPEND)\nos.writev(o, [w[:1], w[1:], b'\\n']); os.close(o)"), { fails: true }],
  "python, sendfile": ["python3", PYTHON("os.sendfile(os.open(f, os.O_WRONLY), os.open('line', os.O_RDONLY), 0, 100)")],
  "node, writeFile with flush": ["node", `node -e 'require("fs").promises.writeFile(process.argv[1], "WORD\\n", { flush: true })' "$1"`],
  "node, a stream of single letters": ["node", `node -e 'const s = require("fs").createWriteStream(process.argv[1]); for (const c of "WORD\\n") s.write(c); s.end()' "$1"`, { fails: true }],
  "cp -p": ["cp", 'cp -p "$2/line" "$1"', { fails: true }],
  "cp -a": ["cp", 'cp -a "$2/line" "$1"'],
  "cp --sparse=always": ["cp", 'cp --sparse=always "$2/line" "$1"'],
  "rsync --inplace": ["rsync", 'rsync --inplace "$2/line" "$1"'],
  "rsync -a --inplace": ["rsync", 'rsync -a --inplace "$2/line" "$1"', { fails: true }],
  "tar x --overwrite": ["tar", 'tar -C "$2" -cf - line | tar -xf - --overwrite --transform s,line,.merge, -C "${1%/*}"', { fails: true }],
  "dd oflag=append conv=notrunc": ["dd", 'dd if="$2/line" of="$1" oflag=append conv=notrunc status=none'],
  "dd oflag=direct,sync conv=fsync": ["dd", 'dd if="$2/line" of="$1" oflag=direct,sync conv=fsync status=none'],
  "dd seek": ["dd", 'dd if="$2/line" of="$1" bs=3 seek=7 status=none', { fails: true }],
  "sort -o": ["sort", 'sort -o "$1" "$2/line"', { fails: true }],
  "busybox cp": ["busybox", 'busybox cp "$2/line" "$1"'],
  "busybox tee": ["busybox", 'busybox tee "$1" < "$2/line" > /dev/null'],
  "tee, a descriptor that a pipe feeds slowly": ["tee", `set -o pipefail; { printf W; printf '%s\\n' "ORD"; } | sed 's/.*/WORD/' | tee "$1" > /dev/null`, { fails: true }],
};

// What must do nothing. The exit status is not 0, but where it is said.
const NOTHING = {
  "vim that writes back what it read": ["vim", VIM("s/$/ /", "wq!")],
  "vim, the word in front of what it read": ["vim", VIM("0put =\"WORD\"", "wq!")],
  "sed -i": ["sed", `sed -i '$!d; s/.*/WORD/' "$1"`],
  "busybox sed -i": ["busybox", `busybox sed -i '$!d; s/.*/WORD/' "$1"`],
  "perl -pi": ["perl", `perl -pi -e 's/.*/WORD/' "$1"`, { anyCode: true }], // perl's own status is 0
  "rsync, which renames a new file over it": ["rsync", 'rsync "$2/line" "$1"'],
  "rsync -a": ["rsync", 'rsync -a "$2/line" "$1"'],
  "install": ["install", 'install -m 600 "$2/line" "$1"'],
  "cp -b": ["cp", 'cp -b "$2/line" "$1"'],
  "cp --remove-destination": ["cp", 'cp --remove-destination "$2/line" "$1"'],
  "cp -l": ["cp", 'cp -l "$2/line" "$1"'],
  "mv": ["mv", 'mv "$2/line" "$1"'],
  "ln -f": ["ln", 'ln -f "$2/line" "$1"'],
  "ln -sf": ["ln", 'ln -sf "$2/line" "$1"'],
  "tar x": ["tar", 'tar -C "$2" -cf - line | tar -xf - --transform s,line,.merge, -C "${1%/*}"'],
  "patch": ["patch", 'diff -u "$1" "$2/line" | patch "$1"'],
  "split": ["split", 'split -b 3 "$2/line" "$1"'],
  "dd that pads with NULs": ["dd", 'dd if="$2/line" of="$1" bs=512 conv=sync status=none'],
  "gzip": ["gzip", 'gzip "$1"'],
  "gzip -c": ["gzip", 'gzip -c "$2/line" > "$1"'],
  "iconv to UTF-16": ["iconv", 'iconv -t UTF-16 "$2/line" > "$1"'],
  "shred -u": ["shred", 'shred -u "$1"'],
  "a writable mapping": ["python3", PYTHON("import mmap\no = open(f, 'r+b'); m = mmap.mmap(o.fileno(), 16); m[:len(w)] = w")],
  "pwrite of the end first": ["python3", PYTHON("o = os.open(f, os.O_WRONLY)\nos.pwrite(o, w[3:] + b'\\n', 3); os.pwrite(o, w[:3], 0); os.close(o)")],
  "touch of a new file beside it": ["touch", 'touch "${1%/*}/new"'],
  "fallocate": ["fallocate", 'fallocate -l 8 "$1"'],
  "chmod, chown, touch": ["chmod", 'chmod 644 "$1" && chown 12 "$1" && touch -d 2001-01-01 "$1"', { code: 0 }],
  "script, whose header is no command": ["script", `script -qc 'echo WORD' "$1"`, { anyCode: true }],
};

// Runs a tool on the control file of `branch`; its scratch folder is fresh.
async function write(g, branch, word, script) {
  const dir = path.join(g.w.dir, "scratch"),
    fill = (text) => text.replaceAll("WORD", word);
  fs.rmSync(dir, { recursive: true, force: true });
  fs.mkdirSync(dir);
  fs.writeFileSync(path.join(dir, "line"), `${word}\n`);
  fs.writeFileSync(path.join(dir, "cut"), word);
  const r = await sh(fill(script), [control(g, branch), dir], { env: { LC_ALL: "C", HOME: dir }, cwd: dir, ...LIMIT });
  assert.equal(r.timedOut, false, `it hung: ${r.stderr}`);
  return r;
}
const names = (g, branch) => fs.readdirSync(g.m.tree(branch)).sort();
const mode = async (g, branch) => (await must(run("stat", ["-c", "%a %u %s", control(g, branch)]))).stdout;

test("C67 tools that write: one whole command, exit status 0", async (t) => {
  const g = await mounted(t, "overlap_deletes", ENGINE);
  let i = 0;
  for (const [name, [tool, script]] of Object.entries(WRITE))
    await t.test(name, async (t) => {
      if (!(await needs(t, tool))) return;
      const branch = `b${i++}`;
      fs.mkdirSync(g.m.tree(branch));
      const before = tip(g.storage(branch)),
        shown = names(g, branch),
        r = await write(g, branch, "feature", script);
      assert.equal(r.code, 0, r.stderr);
      assert.equal(tip(g.storage(branch)), before + 1, "one version more");
      assert.equal(load(g.storage(branch)).transaction.properties["lancefs.op"], "merge");
      const { result } = await answerOf(control(g, branch));
      assert.equal(result, "merged", "the last command is the one that merged: it ran once");
      assert.deepEqual(names(g, branch), shown, "no file is left beside it");
    });
  await checkTip(g, "b0", OVERLAP.union);
});

test("C67 tools that replace, pad or map: nothing is done", async (t) => {
  const g = await mounted(t, "overlap_deletes", ENGINE),
    before = snapshot(g.root),
    shown = names(g, "main");
  for (const [name, [tool, script, { code, anyCode } = {}]] of Object.entries(NOTHING))
    await t.test(name, async (t) => {
      if (!(await needs(t, tool))) return;
      const was = await mode(g, "main"),
        r = await write(g, "main", "feature", script);
      if (code === 0) assert.equal(r.code, 0, r.stderr);
      else if (!anyCode) assert.notEqual(r.code, 0, "it says that it succeeded");
      assert.deepEqual(difference(before, snapshot(g.root)), [], "no byte of the storage changed");
      assert.deepEqual(names(g, "main"), shown, "no file is left beside it");
      if (code === 0) assert.equal(await mode(g, "main"), was, "mode, owner and size are what they were");
    });
  assert.equal((await ctl(control(g, "main"), "feature")).answer.result, "merged");
});

// Those marked `fails`: one of each way to write.
test("C67 tools that write a command which fails: nothing is done, and the exit status says so", async (t) => {
  const g = await mounted(t, "delete_vs_update", ENGINE),
    before = snapshot(g.root);
  for (const [name, [tool, script, { fails } = {}]] of Object.entries(WRITE)) {
    if (!fails) continue;
    await t.test(name, async (t) => {
      if (!(await needs(t, tool))) return;
      const r = await write(g, "main", "u_u", script);
      assert.notEqual(r.code, 0, "it says that it succeeded");
      assert.equal((await answerOf(control(g, "main"))).result, "conflict", "it ran");
      assert.deepEqual(difference(before, snapshot(g.root)), []);
      assert.equal((await ctl(control(g, "main"), "abort")).answer.result, "aborted");
    });
  }
});

test("C67 copies out of the mount with all their attributes succeed", async (t) => {
  const g = await mounted(t, "overlap_deletes", ENGINE),
    out = path.join(g.w.dir, "out");
  fs.mkdirSync(out);
  await must(run("cp", ["-a", `${g.m.tree("feature", "data")}/.`, out]));
  const name = fs.readdirSync(out)[0],
    stat = async (file) => (await must(run("stat", ["-c", "%s %Y", file]))).stdout;
  assert.equal(await stat(path.join(out, name)), await stat(g.m.tree("feature", "data", name)));
  await must(run("cmp", [path.join(out, name), g.m.tree("feature", "data", name)]));
});

test("C67 a mode or an owner given to a control file is refused on a mount that is read only, and changes no data file", async (t) => {
  const g = await mounted(t, "overlap_deletes", ENGINE, { options: ["ro"] }),
    r = await sh('chmod 600 "$1"', [control(g, "main")], { env: { LC_ALL: "C" } });
  assert.equal(errnoIn(r.stderr), "EROFS");
});
