// SPDX-License-Identifier: Apache-2.0
// The system calls of a writer, one by one: files are made, written, read back, linked, renamed and removed until they are
// published; what is published is never touched, and of two that publish one name one gets EEXIST.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { tip } from "../interop/manifest.mjs";
import { errnoOf } from "../harness/control.mjs";
import { must, run } from "../harness/proc.mjs";
import { rows, span, without } from "../harness/rows.mjs";
import { stock } from "../harness/stock.mjs";
import { checkThenUnmount, mounted } from "../harness/tip.mjs";
import { difference, snapshot } from "../harness/workspace.mjs";

const FEATURE = [...without(rows(0, 300), span(10, 19), span(150, 159)), ...rows(1000, 3, "f")];
const open = (t) => mounted(t, "overlap_deletes", "lance12");

test("a staged file can be written in pieces, read back, cut, renamed and removed; then nothing is left", async (t) => {
  const g = await open(t),
    before = snapshot(g.ds),
    dir = g.m.tree("feature", "data"),
    file = path.join(dir, ".tmpABC");
  const fd = fs.openSync(file, "wx+", 0o640);
  assert.equal(errnoOf(() => fs.openSync(file, "wx")), "EEXIST", "exclusive");
  fs.writeSync(fd, "hello ");
  fs.writeSync(fd, "world", 6);
  assert.equal(fs.readFileSync(file, "utf8"), "hello world");
  assert.equal(fs.fstatSync(fd).size, 11);
  assert.equal(fs.statSync(file).mode & 0o777, 0o640);
  fs.ftruncateSync(fd, 5);
  assert.equal(fs.readFileSync(file, "utf8"), "hello");
  fs.fsyncSync(fd);
  fs.futimesSync(fd, 1, 2);
  assert.equal(fs.fstatSync(fd).mtimeMs, 2000);
  fs.renameSync(file, path.join(dir, ".tmpDEF"));
  fs.writeSync(fd, "!", 5);
  assert.equal(fs.readFileSync(path.join(dir, ".tmpDEF"), "utf8"), "hello!");
  assert.equal(errnoOf(() => fs.statSync(file)), "ENOENT");
  fs.unlinkSync(path.join(dir, ".tmpDEF"));
  assert.equal(fs.fstatSync(fd).size, 6, "still open");
  fs.closeSync(fd);
  assert.deepEqual(difference(before, snapshot(g.ds)), []);
});

test("mmap of a file that is being written, and of one that was", async (t) => {
  const g = await open(t),
    file = g.m.tree("feature", "data", "new.lance");
  const script = `import mmap,os,sys
f=os.open(sys.argv[1],os.O_RDWR|os.O_CREAT|os.O_EXCL)
os.write(f,b"a"*10000)
m=mmap.mmap(f,10000,mmap.MAP_SHARED)
m[5000:5005]=b"BBBBB"
m.flush(); assert os.pread(f,5,5000)==b"BBBBB"
m.close(); os.close(f)
f=os.open(sys.argv[1],os.O_RDONLY); m=mmap.mmap(f,10000,mmap.MAP_SHARED,mmap.PROT_READ); assert m[4999:5006]==b"aBBBBBa"`;
  const r = await run("python3", ["-c", script, file]);
  assert.equal(r.code, 0, r.stderr);
  const stored = fs.readFileSync(path.join(g.storage("feature"), "data/new.lance"));
  assert.equal(stored.length, 10000);
  assert.equal(stored.subarray(4999, 5006).toString(), "aBBBBBa");
  assert.equal(errnoOf(() => fs.openSync(file, "r+")), "EPERM", "it is published");
});

// renameat2(2) as node:fs has it not: the errno's name, or "" when it is done.
async function rename(from, to, flag) {
  const script = `import ctypes,errno,sys
c=ctypes.CDLL(None,use_errno=True)
print("" if c.renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),int(sys.argv[3]))==0 else errno.errorcode[ctypes.get_errno()])`;
  return (await must(run("python3", ["-c", script, from, to, String(flag)]))).stdout.trim();
}
const NOREPLACE = 1,
  EXCHANGE = 2;

test("rename without replace: the name must be free, staged or published; a commit by it has one winner", async (t) => {
  const g = await open(t),
    at = (...p) => g.m.tree("feature", ...p),
    put = (name, text) => (fs.writeFileSync(at(name), text, { flag: "wx" }), at(name)),
    a = put("data/.tmpA", "a"),
    b = put("data/.tmpB", "b"),
    published = at("data", fs.readdirSync(at("data")).find((f) => f.endsWith(".lance"))),
    bytes = fs.readFileSync(published);
  assert.equal(await rename(a, b, NOREPLACE), "EEXIST");
  assert.equal(await rename(a, published, NOREPLACE), "EEXIST");
  assert.equal(await rename(a, published, 0), "EEXIST", "what is published is not replaced by a plain rename either");
  assert.equal(await rename(a, b, EXCHANGE), "EINVAL");
  assert.deepEqual([a, b].map((f) => fs.readFileSync(f, "utf8")), ["a", "b"]);
  assert.ok(fs.readFileSync(published).equals(bytes));
  assert.equal(await rename(a, at("data/.tmpC"), NOREPLACE), "");
  assert.equal(await rename(at("data/.tmpC"), b, 0), "", "a plain one replaces what is staged");
  assert.equal(fs.readFileSync(b, "utf8"), "a");
  fs.unlinkSync(b);

  // the next version, by two writers that rename
  const name = (v) => `${(1n << 64n) - 1n - BigInt(v)}.manifest`,
    to = tip(g.storage("feature")) + 1;
  await stock.lance12.op(g.m.table("feature"), "main", "add", { rows: rows(900, 1, "w") });
  const manifest = fs.readFileSync(at("_versions", name(to)));
  fs.unlinkSync(path.join(g.storage("feature"), "_versions", name(to)));
  const staged = [1, 2].map((i) => put(`_versions/${name(to)}#${i}`, manifest));
  const results = await Promise.all(staged.map((f) => rename(f, at("_versions", name(to)), NOREPLACE)));
  assert.deepEqual(results.sort(), ["", "EEXIST"]);
  assert.equal(tip(g.storage("feature")), to);
  for (const f of staged) fs.rmSync(f, { force: true });
  await checkThenUnmount(g, { feature: [...FEATURE, ...rows(900, 1, "w")] });
});

test("names: what may not be made, and what is told", async (t) => {
  const g = await open(t),
    before = snapshot(g.root),
    at = (...p) => g.m.tree("feature", ...p),
    data = fs.readdirSync(at("data"))[0],
    version = fs.readdirSync(at("_versions")).find((n) => n.endsWith(".manifest"));
  assert.equal(errnoOf(() => fs.writeFileSync(at("_versions/7.manifest"), "x")), "EPERM");
  assert.equal(errnoOf(() => fs.writeFileSync(at("_transactions/7-x.txn"), "x")), "EPERM");
  assert.equal(errnoOf(() => fs.writeFileSync(at("README"), "x")), "EPERM");
  assert.equal(errnoOf(() => fs.mkdirSync(at("tree"))), "EPERM", "no branch inside a view");
  assert.equal(errnoOf(() => fs.mkdirSync(at("_versions/x"))), "EPERM");
  assert.equal(errnoOf(() => fs.openSync(at("data", data), "wx")), "EEXIST");
  assert.equal(errnoOf(() => fs.openSync(at("data", data), "w")), "EPERM");
  assert.equal(errnoOf(() => fs.linkSync(at("data", data), at("data/two.lance"))), "EPERM");
  assert.equal(errnoOf(() => fs.linkSync(at("_versions", version), at("_versions/18446744073709551000.manifest"))), "EPERM");
  assert.equal(errnoOf(() => fs.unlinkSync(at("data", data))), "EPERM");
  assert.equal(errnoOf(() => fs.unlinkSync(at("_versions", version))), "EPERM");
  assert.deepEqual(difference(before, snapshot(g.root)), []);
});

test("a commit is a link: the loser gets EEXIST, a wrong number or a damaged manifest EINVAL or EIO, and nothing is there", async (t) => {
  const g = await open(t),
    versions = g.m.tree("main", "_versions"),
    newest = tip(g.ds);
  await stock.lance12.op(g.m.table("main"), "main", "add", { rows: rows(900, 1, "w") });
  const name = (v) => `${(1n << 64n) - 1n - BigInt(v)}.manifest`,
    bytes = fs.readFileSync(path.join(versions, name(newest + 1)));
  const before = snapshot(g.ds);
  const commit = (content, to) => {
    const staged = path.join(versions, `${to}#1`);
    fs.writeFileSync(staged, content, { flag: "wx" });
    const e = errnoOf(() => fs.linkSync(staged, path.join(versions, to)));
    fs.unlinkSync(staged);
    return e;
  };
  assert.equal(commit(bytes, name(newest + 1)), "EEXIST");
  assert.equal(commit(bytes, name(newest + 2)), "EINVAL", "the manifest says another number");
  assert.equal(commit(bytes, "3.manifest"), "EINVAL", "not the data set's scheme of names");
  assert.equal(commit(bytes.subarray(0, bytes.length - 9), name(newest + 2)), "EIO");
  assert.equal(commit(Buffer.alloc(0), name(newest + 2)), "EIO");
  assert.deepEqual(difference(before, snapshot(g.ds)), []);
  await checkThenUnmount(g, { feature: FEATURE });
});

test("a manifest that names a file that is nowhere is not published", async (t) => {
  const g = await open(t),
    main = g.m.tree("main"),
    newest = tip(g.ds);
  await stock.lance12.op(g.m.table("main"), "main", "add", { rows: rows(900, 1, "w") });
  const name = (v) => `${(1n << 64n) - 1n - BigInt(v)}.manifest`,
    bytes = fs.readFileSync(path.join(main, "_versions", name(newest + 1)));
  // the same commit once more, where its version and its data file are gone
  const file = await must(run("find", [path.join(g.ds, "data"), "-newer", path.join(g.ds, "_versions", name(newest)), "-name", "*.lance"]));
  const lost = file.stdout.trim();
  assert.ok(lost && !lost.includes("\n"), "the one new data file");
  fs.unlinkSync(path.join(g.ds, "_versions", name(newest + 1)));
  fs.renameSync(lost, `${lost}.away`);
  const staged = path.join(main, "_versions", `${name(newest + 1)}#1`);
  fs.writeFileSync(staged, bytes, { flag: "wx" });
  assert.equal(errnoOf(() => fs.linkSync(staged, path.join(main, "_versions", name(newest + 1)))), "EIO");
  fs.renameSync(`${lost}.away`, lost);
  fs.linkSync(staged, path.join(main, "_versions", name(newest + 1)));
  fs.unlinkSync(staged);
  assert.equal(tip(g.ds), newest + 1);
  assert.equal((await stock.lance10.read(g.ds, "main")).rows.filter(([id]) => id === 900).length, 1);
});

test("eight writers on the mount and two on the storage: every row is there, versions have no gap", async (t) => {
  const g = await open(t),
    before = (await stock.lance12.read(g.ds, "feature")).rows.map(([id, v, n]) => ({ id, v, n })),
    from = tip(g.storage("feature"));
  const writers = Array.from({ length: 10 }, (_, i) => i);
  const made = await Promise.all(
    writers.map(async (i) => {
      const dir = i < 8 ? [g.m.table("feature"), "main"] : [g.ds, "feature"],
        engine = i % 2 ? "lance10" : "lance12",
        mine = [rows(2000 + i * 10, 2, `a${i}`), rows(2005 + i * 10, 2, `b${i}`)];
      for (const lot of mine) await stock[engine].op(...dir, "add", { rows: lot });
      return mine.flat();
    }),
  );
  assert.equal(tip(g.storage("feature")), from + 20);
  await checkThenUnmount(g, { feature: [...before, ...made.flat()] });
});
