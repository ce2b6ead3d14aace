// SPDX-License-Identifier: Apache-2.0
import { test } from "node:test";
import { stopBeforeEachCall } from "./stops.mjs";

const ENGINE = "lance10";
test(
  `a stop before each call that changes the file system, mode=link [written by ${ENGINE}]`,
  { timeout: 300_000 },
  (t) => stopBeforeEachCall(t, "link", ENGINE),
);
