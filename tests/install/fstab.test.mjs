// SPDX-License-Identifier: Apache-2.0
// mount(8) and /etc/fstab: real mounts by lines of a table, with our helper and with libfuse's; what systemd makes of them.
// Everything happens in a mount namespace of its own, whose /usr/bin and /usr/sbin hold the program under test.
import assert from "node:assert/strict";
import { test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { run, sh } from "../harness/proc.mjs";
import { generate, LANCEFS, needs, PROJECT, workspace } from "../harness/workspace.mjs";

// What mount(8) and lancefs do, and what is seen then; "umount" ends the daemon, or the namespace stays.
const SCRIPT = `
set -e
mount -t overlay overlay -o "lowerdir=$1/bin:/usr/bin" /usr/bin
mount -t overlay overlay -o "lowerdir=$1/sbin:/usr/sbin" /usr/sbin
shift
"$@"
for at; do :; done
ls "$at/tree"
findmnt -n -o FSTYPE,SOURCE,OPTIONS "$at"
touch "$at/tree/main/.merge" 2>&1 && echo writable
umount "$at"
`;

async function inNamespace(t, w, helper, args) {
  const usr = path.join(w.dir, `usr-${helper}`);
  for (const d of ["bin", "sbin"]) fs.mkdirSync(path.join(usr, d), { recursive: true });
  fs.copyFileSync(LANCEFS, path.join(usr, "bin/lancefs"));
  if (helper) fs.symlinkSync("../bin/lancefs", path.join(usr, "sbin/mount.fuse.lancefs"));
  return run("unshare", ["--mount", "--propagation", "private", "bash", "-c", SCRIPT, "sh", usr, ...args], { env: { LC_ALL: "C" } });
}
async function possible(t, w) {
  if (process.getuid() !== 0) return t.skip("only root can mount by mount(8)"), false;
  const r = await sh('unshare --mount --propagation private mount -t overlay overlay -o "lowerdir=$1:/usr/bin" /usr/bin', [w.dir]);
  assert.ok(!r.timedOut, "mount hangs");
  if (r.code !== 0) return t.skip(`no overlay of /usr here: ${r.stderr.trim()}`), false;
  return needs(t, "findmnt");
}

for (const [what, helper] of [["lancefs's own helper, mount.fuse.lancefs", true], ["libfuse's mount.fuse3, which finds lancefs in PATH", false]])
  test(`mount -t fuse.lancefs and a line of fstab, by ${what}`, async (t) => {
    const w = workspace(t);
    if (!(await possible(t, w))) return;
    const g = await generate(w, "siblings", "lance12"),
      mnt = path.join(w.dir, "mnt"),
      table = path.join(w.dir, "fstab");
    fs.mkdirSync(mnt);
    const plain = await inNamespace(t, w, helper, ["mount", "-t", "fuse.lancefs", "-o", "mode=link,cache_mb=32", g.ds, mnt]);
    assert.equal(plain.code, 0, plain.stderr);
    assert.match(plain.stdout, /^main$/m);
    assert.match(plain.stdout, /^fuse\.lancefs +\S*t\.lance /m);
    assert.match(plain.stdout, /^writable$/m);
    // the line that the manual shows, with this data set, and one that is read only
    const page = fs.readFileSync(path.join(PROJECT, "man/lancefs.1"), "utf8"),
      line = /^\/data\/photos\.lance \/mnt\/photos fuse\.lancefs .*$/m.exec(page)[0].replaceAll("\\-", "-");
    fs.rmSync(path.join(w.dir, `usr-${helper}`), { recursive: true });
    fs.writeFileSync(table, `${line.replace("/data/photos.lance", g.ds).replace("/mnt/photos", mnt)}\n`);
    const byTable = await inNamespace(t, w, helper, ["mount", "-T", table, mnt]);
    assert.equal(byTable.code, 0, byTable.stderr);
    assert.match(byTable.stdout, /^main$/m);
    fs.rmSync(path.join(w.dir, `usr-${helper}`), { recursive: true });
    fs.writeFileSync(table, `${g.ds} ${mnt} fuse.lancefs ro,noauto,nofail,_netdev,x-systemd.automount,x-systemd.idle-timeout=60 0 0\n`);
    const ro = await inNamespace(t, w, helper, ["mount", "-T", table, mnt]);
    assert.match(ro.stdout, /^fuse\.lancefs .*\bro\b/m, ro.stderr);
    assert.ok(!/^writable$/m.test(ro.stdout));
    // what goes wrong is said by mount(8), and is its exit status
    fs.rmSync(path.join(w.dir, `usr-${helper}`), { recursive: true });
    const wrong = await inNamespace(t, w, helper, ["mount", "-t", "fuse.lancefs", path.join(w.dir, "none.lance"), mnt]);
    assert.notEqual(wrong.code, 0);
    assert.match(wrong.stderr, /lancefs: .*none\.lance/);
  });

test("systemd makes a mount and an automount unit of the manual's line", async (t) => {
  const generator = "/usr/lib/systemd/system-generators/systemd-fstab-generator";
  if (!fs.existsSync(generator)) return t.skip("systemd is not installed");
  const w = workspace(t),
    out = ["normal", "early", "late"].map((d) => path.join(w.dir, d)),
    page = fs.readFileSync(path.join(PROJECT, "man/lancefs.1"), "utf8"),
    table = path.join(w.dir, "fstab");
  for (const d of out) fs.mkdirSync(d);
  fs.writeFileSync(table, `${/^\/data\/photos\.lance .*$/m.exec(page)[0].replaceAll("\\-", "-")}\n`);
  const r = await run(generator, out, { env: { SYSTEMD_FSTAB: table, SYSTEMD_LOG_TARGET: "console", SYSTEMD_IN_INITRD: "0" } });
  assert.equal(r.code, 0, r.stderr);
  const unit = fs.readFileSync(path.join(out[0], "mnt-photos.mount"), "utf8");
  assert.match(unit, /^What=\/data\/photos\.lance$/m);
  assert.match(unit, /^Type=fuse\.lancefs$/m);
  assert.match(fs.readFileSync(path.join(out[0], "mnt-photos.automount"), "utf8"), /^Where=\/mnt\/photos$/m);
});
