import assert from "node:assert/strict";
import { test } from "node:test";

import { listFigures } from "../../custom_components/windowed_conversation/frontend/week_view.js";
import { makeContext } from "./contexts.js";
import { collectText, findElements } from "./nodes.js";

const { hass, t } = makeContext();
const SLOWEST = { turn_id: "t1", duration: 7, error: null, step: "request", name: null, times: 1, step_duration: 6 };
const WEEK = { questions: 200, local: 176, failed: 2, cost: 0.03, currency: "USD", slowest: SLOWEST };

test("a week has its questions, the share without a model, its cost, failures and the slowest one", () => {
  const text = collectText(listFigures(hass, t, WEEK));
  for (const part of ["200", "88%", "$0.0300", "2", "7 sec", " why.step_request: 6 sec"]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
});

test("the slowest question leads to its details", () => {
  const [link] = findElements(listFigures(hass, t, WEEK), ({ tag }) => tag === "a");
  assert.equal(link.props.href, "/windowed-conversation/turns?turn=t1");
});

test("a tool that took the longest is named", () => {
  const slowest = { ...SLOWEST, step: "tool", name: "GetForecast" };
  assert.ok(collectText(listFigures(hass, t, { ...WEEK, slowest })).includes(" GetForecast: 6 sec"));
});

test("several requests are counted, and an error is said first", () => {
  const slowest = { ...SLOWEST, error: "unavailable", times: 3 };
  const text = collectText(listFigures(hass, t, { ...WEEK, slowest }, "It is away."));
  assert.ok(text.includes(" It is away. why.step_request × 3: 6 sec"), String(text));
});

test("a question whose time is not known has no reason", () => {
  const slowest = { ...SLOWEST, step: null, times: 0, step_duration: null };
  assert.ok(
    !collectText(listFigures(hass, t, { ...WEEK, slowest }))
      .join()
      .includes("why.step"),
  );
});

test("a cost that is not known is left out", () => {
  assert.ok(!collectText(listFigures(hass, t, { ...WEEK, cost: null })).includes("turns.cost"));
});

test("a week without questions says so", () => {
  assert.deepEqual(collectText(listFigures(hass, t, { ...WEEK, questions: 0 })), ["turns.none"]);
});
