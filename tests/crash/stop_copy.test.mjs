// SPDX-License-Identifier: Apache-2.0
import { test } from "node:test";
import { stopBeforeEachCall } from "./stops.mjs";

const ENGINE = "lance12";
test(
  `a stop before each call that changes the file system, mode=copy [written by ${ENGINE}]`,
  { timeout: 300_000 },
  (t) => stopBeforeEachCall(t, "copy", ENGINE),
);
