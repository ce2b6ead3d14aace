// SPDX-License-Identifier: Apache-2.0
// Commands given to control files the way people give them, and what comes back.
import assert from "node:assert/strict";
import { probe } from "./workspace.mjs";
import { run, sh } from "./proc.mjs";

// What bash's messages call an error number (the C library's words).
const ERRNO = {
  "Operation canceled": "ECANCELED",
  "Operation not supported": "EOPNOTSUPP",
  "Invalid argument": "EINVAL",
  "to a subdirectory of itself": "EINVAL", // mv's words for it
  "No such file or directory": "ENOENT",
  "Stale file handle": "ESTALE",
  "No data available": "ENODATA",
  "Read-only file system": "EROFS",
  "Input/output error": "EIO",
  "Permission denied": "EACCES",
  "Operation not permitted": "EPERM",
  "Resource temporarily unavailable": "EAGAIN",
  "Interrupted system call": "EINTR",
  "File exists": "EEXIST",
  "Device or resource busy": "EBUSY",
  "Argument list too long": "E2BIG",
  "Message too long": "EMSGSIZE",
  "File too large": "EFBIG",
  "No space left on device": "ENOSPC",
  "Transport endpoint is not connected": "ENOTCONN",
  "Is a directory": "EISDIR",
  "Too many levels of symbolic links": "ELOOP",
  "File name too long": "ENAMETOOLONG",
  "Function not implemented": "ENOSYS",
  "Software caused connection abort": "ECONNABORTED",
  "Not a directory": "ENOTDIR",
  "Directory not empty": "ENOTEMPTY",
  "File name too long": "ENAMETOOLONG",
};
// The errno that a message on standard error names; undefined for none.
export const errnoIn = (text) => ERRNO[Object.keys(ERRNO).find((m) => text.includes(m))];

// The errno that a call of node:fs fails with; undefined when it does not.
export function errnoOf(fn) {
  try {
    fn();
  } catch (e) {
    return e.code;
  }
  return undefined;
}

// The `key: value` lines of an answer; lines that continue a key (indented, or `- item`) become a list.
export function parseAnswer(text) {
  const out = { text, notes: [] };
  let key;
  for (const line of text.split("\n")) {
    const pair = /^([a-z][\w.-]*):(?:\s+(.*))?$/i.exec(line),
      item = /^(?:\s+-?|-)\s*(\S.*)$/.exec(line);
    if (pair) {
      key = pair[1];
      const value = pair[2]?.replace(/^"(.*)"$/, "$1");
      if (key === "notes") out.notes = value ? [...out.notes, value] : out.notes;
      else out[key] = value ?? [];
    } else if (item && key === "notes") out.notes.push(item[1]);
    else if (item && Array.isArray(out[key])) out[key].push(item[1]);
  }
  return out;
}

export const answerOf = async (file) => parseAnswer((await run("cat", ["--", file])).stdout);

// `echo LINE > FILE` by a real shell, then the answer read from the file: { code, errno, stderr, answer }.
export async function ctl(file, line) {
  const r = await sh('echo "$1" > "$2"', [line, file], { env: { LC_ALL: "C" } });
  assert.equal(r.timedOut, false, `echo '${line}' > ${file} did not come back`);
  return {
    code: r.code,
    errno: r.code === 0 ? undefined : errnoIn(r.stderr),
    stderr: r.stderr,
    answer: await answerOf(file),
  };
}

// The pieces written one by one through one descriptor ("\\n" stands for a newline), and the answer which that same
// descriptor then gives: { code, errno, answer }.
export async function ctlThrough(file, ...pieces) {
  const r = await probe("command", file, ...pieces);
  assert.equal(r.timedOut, false, `writing to ${file} did not come back`);
  const [errno, ...text] = r.stdout.split("\n");
  return {
    code: r.code,
    errno: errno === "0" ? undefined : errno || errnoIn(r.stderr),
    stderr: r.stderr,
    answer: parseAnswer(text.join("\n")),
  };
}
