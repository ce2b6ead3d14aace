// SPDX-License-Identifier: Apache-2.0
// Who may (C64): a data set of one user, mounted for all by root; other users get what the real files would give them. And a
// plain user in a user namespace of his own mounts by himself.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { mount } from "../harness/mount.mjs";
import { must, run } from "../harness/proc.mjs";
import { OVERLAP } from "../harness/rows.mjs";
import { checkStorage, control, onEach } from "../harness/tip.mjs";
import { difference, generate, LANCEFS, needs, snapshot, workspace } from "../harness/workspace.mjs";

const OWNER = 61001,
  FRIEND = 61002, // of the owner's group
  STRANGER = 61003;
const as = (uid, gid, script, ...args) =>
  run("setpriv", [`--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "sh", "-c", script, "sh", ...args]);

// A data set that belongs to OWNER, with these modes for files (directories get the x's that go with them).
async function owned(t, engine, mode) {
  const w = workspace(t),
    g = await generate(w, "overlap_deletes", engine);
  for (const dir of [w.dir, path.dirname(g.root)]) fs.chmodSync(dir, 0o755);
  await must(run("chown", ["-R", `${OWNER}:${OWNER}`, g.root]));
  await must(run("chmod", ["-R", mode, g.root]));
  return { w, engine, ...g };
}

async function possible(t) {
  if (process.getuid() !== 0) return t.skip("only root can be others"), false;
  return needs(t, "setpriv");
}

onEach("C64 allow_other: a stranger gets EACCES, the group reads, nobody but the mounting user commands", async (t, engine) => {
  if (!(await possible(t))) return;
  const g = await owned(t, engine, "u=rwX,g=rX,o=");
  g.m = await mount(g.w, g.ds, { options: ["allow_other"] });
  const before = snapshot(g.root),
    file = fs.readdirSync(g.m.tree("main", "data"))[0];
  const attempts = {
    list: ['ls "$1"', g.m.tree("main", "data")],
    read: ['cat "$1" > /dev/null', g.m.tree("main", "data", file)],
    command: ['echo feature > "$1"', control(g, "main")],
    "read a control file": ['cat "$1" > /dev/null', control(g, "main")],
    "make a branch": ['mkdir "$1"', g.m.tree("theirs")],
    "remove a branch": ['rmdir "$1"', g.m.tree("feature")],
    write: ['echo x > "$1"', g.m.tree("main", "data", "new.lance")],
    "make a tag": ['ln -s ../tree/main/.versions/1 "$1"', path.join(g.m.mnt, "tags/theirs")],
  };
  for (const [who, uid, gid] of [["stranger", STRANGER, STRANGER], ["friend", FRIEND, OWNER]])
    for (const [what, [script, ...args]] of Object.entries(attempts)) {
      const r = await as(uid, gid, script, ...args),
        may = who === "friend" && (what === "list" || what === "read");
      assert.equal(r.code === 0, may, `${who}: ${what}: exit ${r.code} ${r.stderr}`);
      if (!may) assert.match(r.stderr, /Permission denied|Operation not permitted/, `${who}: ${what}: ${r.stderr}`);
    }
  assert.deepEqual(difference(before, snapshot(g.root)), [], "nothing changed");
  assert.equal((await as(STRANGER, STRANGER, 'stat "$1" > /dev/null', control(g, "main"))).code === 0, false);
  await g.m.unmount();
});

onEach("C64 a plain user in a user namespace mounts, reads, merges and unmounts, without fusermount3", async (t, engine) => {
  if (!(await possible(t)) || !(await needs(t, "unshare"))) return;
  const g = await owned(t, engine, "u=rwX,g=,o="),
    point = path.join(g.w.dir, "point"),
    program = path.join(g.w.dir, "lancefs"),
    device = path.join(g.w.dir, "fuse"),
    nothing = path.join(g.w.dir, "nothing"),
    log = path.join(g.w.dir, "log");
  fs.copyFileSync(LANCEFS, program); // the build may lie where only root gets
  for (const dir of [point, nothing]) fs.mkdirSync(dir);
  fs.writeFileSync(log, "");
  for (const f of [point, log, program]) fs.chownSync(f, OWNER, OWNER);
  await must(run("mknod", ["-m", "666", device, "c", "10", "229"])); // as udev makes it, whatever this machine has
  if ((await run("unshare", ["--user", "true"])).code !== 0) return t.skip("no user namespaces here");
  const inside = `
    set -e
    PATH=${nothing} "$1" -o log_file="$4" "$2" "$3"
    [ "$(stat -c %u "$3/tree/main")" = 0 ]
    cat "$3"/tree/main/data/* > /dev/null
    ls "$3/tree"
    echo feature > "$3/tree/main/.merge"
    grep result "$3/tree/main/.merge"
    umount "$3"
    ! ls "$3/tree" 2> /dev/null`;
  const r = await run("unshare", ["--mount", "sh", "-c",
    'mount --bind "$1" /dev/fuse && shift && uid=$1 && shift && exec setpriv --reuid=$uid --regid=$uid --clear-groups unshare --user --map-root-user --mount sh -c "$@"',
    "sh", device, String(OWNER), inside, "sh", program, g.ds, point, log]);
  if (r.stderr.includes("cannot open /dev/fuse") || r.stderr.includes("failed to open /dev/fuse: Operation not permitted"))
    return t.skip(`a device node cannot be used here: ${r.stderr.trim()}`);
  assert.equal(r.code, 0, r.stderr + r.stdout);
  assert.match(r.stdout, /^feature$[^]*^result: merged$/m);
  assert.equal(fs.statSync(path.join(g.ds, "_versions", fs.readdirSync(path.join(g.ds, "_versions")).sort()[0])).uid, OWNER);
  await checkStorage(g, "main", OVERLAP.union);
});
