import assert from "node:assert/strict";
import { test } from "node:test";

import { findAxisEnd, limitSeries } from "../../custom_components/windowed_conversation/frontend/chart.js";
import {
  estimateLocalSaving,
  groupRows,
  listDays,
  sumRows,
  view,
} from "../../custom_components/windowed_conversation/frontend/costs_view.js";
import { makeContext } from "./contexts.js";
import { collectText } from "./nodes.js";

const ROW = {
  day: "2026-01-30",
  entity_id: "conversation.one",
  agent: "One",
  person: "Anna",
  model: "small",
  route: "model",
  turns: 2,
  requests: 3,
  input_tokens: 100,
  cached_tokens: 40,
  output_tokens: 10,
  cost: 0.5,
  without_price: 0,
  saved: 0.1,
};
const UNPRICED = { ...ROW, day: "2026-01-31", agent: "Two", person: null, cost: null, without_price: 3 };

test("a sum adds what is known", () => {
  assert.deepEqual(sumRows([ROW, UNPRICED], "all"), {
    name: "all",
    turns: 4,
    requests: 6,
    input: 200,
    cached: 80,
    output: 20,
    cost: 0.5,
    withoutPrice: 3,
    saved: 0.2,
  });
});

test("a sum without any price has no cost", () => {
  assert.equal(sumRows([UNPRICED]).cost, null);
});

test("a free turn costs nothing, which is known", () => {
  assert.equal(sumRows([{ ...ROW, cost: 0 }]).cost, 0);
});

test("local turns do not make an unknown cost known", () => {
  assert.equal(sumRows([UNPRICED, { ...ROW, route: "local", cost: 0 }]).cost, null);
});

test("groups are sorted by cost", () => {
  const cheap = { ...ROW, agent: "Cheap", cost: 0.1 };
  const names = groupRows([UNPRICED, cheap, ROW], (row) => row.agent).map((sum) => sum.name);
  assert.deepEqual(names, ["One", "Cheap", "Two"]);
});

test("days without a turn have a bar", () => {
  const days = listDays(
    [
      { ...ROW, day: "2026-03-01" },
      { ...ROW, day: "2026-02-27" },
    ],
    false,
  );
  assert.deepEqual(days, ["2026-02-27", "2026-02-28", "2026-03-01"]);
});

test("months without a turn have a bar", () => {
  const months = listDays(
    [
      { ...ROW, day: "2027-01-01" },
      { ...ROW, day: "2026-11-01" },
    ],
    true,
  );
  assert.deepEqual(months, ["2026-11-01", "2026-12-01", "2027-01-01"]);
});

test("nothing has no days", () => {
  assert.deepEqual(listDays([], false), []);
});

test("an axis ends at a round number that is not below the largest value", () => {
  assert.deepEqual([0, 0.0013, 0.3, 1, 2.2, 70].map(findAxisEnd), [1, 0.002, 0.5, 1, 2.5, 100]);
});

test("groups that have no colour of their own are summed", () => {
  const series = Array.from({ length: 8 }, (_, number) => ({ name: `${number}`, values: [number, 1] }));
  const limited = limitSeries(series, "others");
  assert.deepEqual(
    limited.map(({ name }) => name),
    ["7", "6", "5", "4", "3", "others"],
  );
  assert.deepEqual(limited.at(-1).values, [3, 3]);
});

test("answers without a model have saved the cost of as many answers of one", () => {
  const local = { ...ROW, route: "local", turns: 6, cost: 0 };
  assert.equal(estimateLocalSaving([ROW, local]), 1.5);
});

test("without a known cost, nothing is known to be saved", () => {
  assert.equal(
    estimateLocalSaving([
      { ...ROW, cost: null },
      { ...ROW, route: "local" },
    ]),
    null,
  );
});

test("the chart is split by the group of the address", () => {
  const data = { rows: [ROW, { ...ROW, model: "large" }], currency: "USD" };
  const text = (state) => collectText(view.render(makeContext(), { view: "costs", ...state }, data)).join("|");
  assert.match(text({ by: "model" }), /small.*large/);
  assert.match(text({}), /turn_route:model/);
});

test("an axis without costs names what it counts", () => {
  const render = (rows) => collectText(view.render(makeContext(), { view: "costs" }, { rows, currency: "USD" }));
  const count = (text) => text.filter((each) => each === "turns.tokens").length;
  assert.equal(count(render([{ ...ROW, cost: null }])), count(render([ROW])) + 1);
});

test("agents without a known price are named with their requests", () => {
  const text = collectText(view.render(makeContext(), { view: "costs" }, { rows: [ROW, UNPRICED], currency: "USD" }));
  assert.ok(text.includes("costs.without_price|Two|3"));
});

test("other numbers of days than those offered are not asked for", async () => {
  const context = makeContext({ costs: {} });
  await view.load(context, { view: "costs", days: "4000" });
  assert.deepEqual(context.calls, [["costs", { days: 30 }]]);
});
