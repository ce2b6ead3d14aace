// SPDX-License-Identifier: Apache-2.0
// The pair table (cells.mjs), the half that this engine writes.
import { runTable } from "./run.mjs";

runTable("lance10");
