// SPDX-License-Identifier: Apache-2.0
// README's shell sessions as something that can be played. A session is all code of one section (## or ###) that has lines
// beginning with "$ ": what stands behind the prompt is run, continued by lines that begin with "> ", and what follows is its
// output. In output a line "..." stands for any number of lines. By hand: node tests/docs/play.mjs [SECTION] prints what is
// really answered.
import fs from "node:fs";
import path from "node:path";
import { isMounted } from "../harness/mount.mjs";
import { run, sh } from "../harness/proc.mjs";
import { LANCEFS, PROJECT } from "../harness/workspace.mjs";
import { engineDir } from "../interop/engines.mjs";

export const README = path.join(PROJECT, "README.md");

// Every line of code with its section: [{ section, fence, text, line }]. Code is fenced, or indented by four spaces behind an
// empty line.
function codeLines(markdown) {
  const out = [];
  let section = "",
    fence,
    indented = false,
    before = "";
  markdown.split("\n").forEach((text, i) => {
    const mark = /^```(.*)$/.exec(text);
    if (mark) fence = fence === undefined ? mark[1] : undefined;
    else if (fence !== undefined) out.push({ section, fence, text, line: i + 1 });
    else if (/^##+ /.test(text)) section = text.replace(/^#+ /, "");
    else {
      indented = /^ {4}/.test(text) ? indented || before === "" : indented && text === "";
      if (indented) out.push({ section, fence: "", text: text.slice(4), line: i + 1 });
    }
    before = text;
  });
  return out;
}

// [{ section, steps: [{ command, expected: [lines], line }] }], in README's order.
export function sessions(markdown) {
  const found = new Map();
  let step, last;
  for (const code of codeLines(markdown)) {
    if (last && (code.section !== last.section || code.line !== last.line + 1)) step = undefined; // another block
    last = code;
    const prompt = /^([$>]) (.*)$/.exec(code.text);
    if (prompt?.[1] === "$") {
      step = { command: prompt[2], expected: [], line: code.line };
      if (!found.has(code.section)) found.set(code.section, []);
      found.get(code.section).push(step);
    } else if (step && prompt && !step.expected.length) step.command += `\n${prompt[2]}`;
    else if (step && (code.text || step.expected.length)) step.expected.push(code.text);
  }
  return [...found].map(([section, steps]) => ({ section, steps: steps.map((s) => ({ ...s, expected: trimmed(s.expected) })) }));
}
const trimmed = (lines) => {
  const out = [...lines];
  while (out.length && out.at(-1).trim() === "") out.pop();
  return out;
};

// What is another one each time: identifiers, times, speeds, the place where it is played.
export const normal = (text, dir) =>
  text
    .replaceAll(dir ?? "\0", "/data")
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "UUID")
    .replace(/\b[0-9a-f]{32}\b/g, "UUID")
    .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME")
    .replace(/^(ba)?sh: line \d+: /gm, "bash: ")
    .trimEnd();

// Do the lines fit, where "..." stands for any?
export function fits(actual, expected) {
  if (!expected.length) return !actual.length;
  const [first, ...rest] = expected;
  if (first.trim() === "...") return actual.some((_, i) => fits(actual.slice(i), rest)) || fits([], rest);
  return actual.length > 0 && normal(actual[0]) === normal(first) && fits(actual.slice(1), rest);
}

// ls prints columns to a terminal, and a line a name to the tests.
export const answers = ({ command, expected }, lines) =>
  command.startsWith("ls ") ? lines.join(" ") === expected.join(" ").split(/\s+/).join(" ") : fits(lines, expected);

// Plays a session in w.dir as a user types it, in one shell: [{ code, lines }] of its steps. photos.lance and mnt are there,
// unless the session makes them itself.
export async function play(w, steps, { engine = "lance10", limitMs } = {}) {
  const at = (...p) => path.join(w.dir, ...p),
    all = steps.map((s) => s.command).join("\n");
  fs.mkdirSync(at("bin"));
  fs.symlinkSync(LANCEFS, at("bin", "lancefs"));
  fs.symlinkSync(path.join(path.dirname(LANCEFS), "fsck.lancefs"), at("bin", "fsck.lancefs"));
  fs.symlinkSync(path.join(PROJECT, "tests"), at("tests"));
  fs.symlinkSync(path.join(engineDir(engine), "node_modules"), at("node_modules"));
  if (!/mkdir mnt$/m.test(all)) {
    fs.mkdirSync(at("mnt"));
    await run("cp", ["-r", path.join(PROJECT, "tests/data/photos.lance"), at("photos.lance")]);
  }
  w.defer(async () => {
    if (isMounted(at("mnt"))) await run("fusermount3", ["-uz", at("mnt")]);
  });
  // Output goes through a pipe, as to a terminal: a daemon whose standard error is a file would log there.
  const script = steps.map(
    (s, i) => `mkfifo pipe${i}; cat pipe${i} > out${i} & eval "$(cat step${i})" > pipe${i} 2>&1 < /dev/null; echo $? > code${i}; wait $!`,
  );
  steps.forEach((s, i) => fs.writeFileSync(at(`step${i}`), s.command));
  const r = await sh(script.join("\n"), [], {
    cwd: w.dir,
    limitMs,
    env: { PATH: `${at("bin")}:${process.env.PATH}`, LC_ALL: "C", LANCEFS_ENGINES: path.dirname(engineDir(engine)), LDB: engine, RUST_LOG: "off" },
  });
  if (r.timedOut || r.stderr) throw new Error(`the session ended early: ${r.stderr}`);
  return steps.map((_, i) => ({
    code: Number(fs.readFileSync(at(`code${i}`), "utf8")),
    lines: normal(fs.readFileSync(at(`out${i}`), "utf8"), w.dir).split("\n").filter((l, _i, a) => l || a.length > 1),
  }));
}

if (process.argv[1] === import.meta.filename) {
  const os = await import("node:os");
  for (const s of sessions(fs.readFileSync(README, "utf8")).filter((x) => !process.argv[2] || x.section === process.argv[2])) {
    const undo = [],
      w = { dir: fs.mkdtempSync(path.join(os.tmpdir(), "lancefs-play-")), defer: (fn) => undo.unshift(fn) };
    const played = await play(w, s.steps);
    console.log(`## ${s.section}`);
    played.forEach((a, i) => {
      const ok = answers(s.steps[i], a.lines);
      console.log(`$ ${s.steps[i].command.replaceAll("\n", "\n> ")}${a.code ? `   [${a.code}]` : ""}${ok ? "" : "   DIFFERS"}`);
      if (a.lines.length) console.log(a.lines.join("\n"));
    });
    for (const fn of undo) await fn();
    await run("rm", ["-rf", "--one-file-system", w.dir]);
  }
}
