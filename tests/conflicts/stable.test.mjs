// SPDX-License-Identifier: Apache-2.0
// Choices on tables with stable row ids: the row of each side is shown by its id, wherever it lies; a loser's update goes with its
// whole commit or not at all, and no row is there twice.
import assert from "node:assert/strict";
import { aborts, checkRows, chooses, conflicts, continues, doesNotContinue, stopsOn } from "../harness/conflicts.mjs";
import { changed, rows } from "../harness/rows.mjs";
import { checkThenUnmount, checkTip, mounted, onEach } from "../harness/tip.mjs";
import { merge, withOps } from "../harness/verbs.mjs";

const MAIN = changed([...rows(0, 10), ...rows(200, 4, "m")], 5, { v: "mm" }); // the generator's

onEach("both updated rows 3 and 4, each in one commit: theirs for both, ours for both, never one of each", async (t, engine) => {
  const g = withOps(await mounted(t, "stable_row_ids", engine));
  for (const name of ["x", "y"]) await g.op("main", "fork", { name, from: "main" });
  const update = (branch, where, v) => g.op(branch, "update", { where, values: { v } });
  await update("main", "id IN (3, 4)", "m");
  await update("x", "id IN (3, 4)", "x");
  await update("y", "id = 4", "y");
  const ours = changed(MAIN, [3, 4], { v: "m" });

  await stopsOn(g, "main", "y", 1); // ours has row 3 in that commit too
  assert.match(conflicts(g, "main")[0].unit, /^row 4 of fragment 0/);
  await checkRows(g, "main", 0, "base", [rows(4, 1)[0]]);
  await checkRows(g, "main", 0, "ours", [{ ...rows(4, 1)[0], v: "m" }]);
  await checkRows(g, "main", 0, "theirs", [{ ...rows(4, 1)[0], v: "y" }]);
  await chooses(g, "main", 0, "theirs");
  const why = await doesNotContinue(g, "main");
  assert.match(why.text, /reason: .*row 3 of fragment 0/, why.text);
  await aborts(g, "main");

  await stopsOn(g, "main", "x", 2);
  await chooses(g, "main", 0, "theirs");
  await chooses(g, "main", 1, "ours");
  await doesNotContinue(g, "main");
  await checkTip(g, "main", ours, { view: false });
  await chooses(g, "main", 1, "theirs");
  await continues(g, "main");
  await checkTip(g, "main", changed(MAIN, [3, 4], { v: "x" }));
  await merge(g, "main", "x", "up-to-date");

  await stopsOn(g, "x", "y", 1); // theirs loses its whole commit, which is that row alone
  await chooses(g, "x", 0, "ours");
  await continues(g, "x", ["merged", "empty-merge"]);
  await checkThenUnmount(g, { main: changed(MAIN, [3, 4], { v: "x" }), x: changed(MAIN, [3, 4], { v: "x" }) });
});
