import assert from "node:assert/strict";
import { test } from "node:test";

import {
  groupByDay,
  groupRows,
  shareSums,
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
  turns: 2,
  requests: 3,
  input_tokens: 100,
  cached_tokens: 40,
  output_tokens: 10,
  cost: 0.5,
  without_price: 0,
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
  });
});

test("a sum without any price has no cost", () => {
  assert.equal(sumRows([UNPRICED]).cost, null);
});

test("a free turn costs nothing, which is known", () => {
  assert.equal(sumRows([{ ...ROW, cost: 0 }]).cost, 0);
});

test("groups are sorted by cost", () => {
  const cheap = { ...ROW, agent: "Cheap", cost: 0.1 };
  const names = groupRows([UNPRICED, cheap, ROW], (row) => row.agent).map((sum) => sum.name);
  assert.deepEqual(names, ["One", "Cheap", "Two"]);
});

test("days are sorted newest first", () => {
  assert.deepEqual(
    groupByDay([ROW, UNPRICED]).map((sum) => sum.name),
    ["2026-01-31", "2026-01-30"],
  );
});

test("the largest cost fills the bar", () => {
  assert.deepEqual(shareSums(groupRows([ROW, { ...ROW, agent: "Half", cost: 0.25 }], (row) => row.agent)), [1, 0.5]);
});

test("without prices, bars are shares of the tokens", () => {
  assert.deepEqual(shareSums([sumRows([UNPRICED]), sumRows([UNPRICED, UNPRICED])]), [0.5, 1]);
});

test("without tokens, bars are empty", () => {
  assert.deepEqual(shareSums([sumRows([])]), [0]);
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
