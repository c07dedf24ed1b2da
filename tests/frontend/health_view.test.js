import assert from "node:assert/strict";
import { test } from "node:test";

import {
  describeCalibration,
  describeServer,
  view,
} from "../../custom_components/windowed_conversation/frontend/health_view.js";
import { makeContext } from "./contexts.js";
import { collectText } from "./nodes.js";

const SERVER = { reachable: true, away_since: null, answered_at: null, models: 2 };
const MEMORY = {
  available: true,
  reason: null,
  facts: 1,
  turns: 2,
  summaries: 0,
  bytes: 2_000_000,
  unindexed: 0,
  pending_writes: 0,
};
const AGENT = {
  entity_id: "conversation.one",
  name: "One",
  model: "small",
  context_tokens: 8192,
  context_source: "learned",
};

test("a server that is away says since when", () => {
  const server = { ...SERVER, reachable: false, away_since: "2026-01-30T10:00:00+00:00" };
  assert.match(describeServer(makeContext(), { state: "loaded", server }), /^health.away_since\|Jan 30, 2026/);
});

test("a server that answered says when", () => {
  const server = { ...SERVER, answered_at: "2026-01-30T10:00:00+00:00" };
  assert.match(describeServer(makeContext(), { state: "loaded", server }), /^health.answered\|Jan 30, 2026/);
});

test("a server that was never asked is not called reachable", () => {
  assert.equal(describeServer(makeContext(), { state: "loaded", server: SERVER }), "health.not_asked");
});

test("an account that is not loaded says so", () => {
  assert.equal(describeServer(makeContext(), { state: "setup_retry", server: null }), "health.not_loaded");
});

test("a bill above our count is named with its share", () => {
  assert.equal(describeCalibration(makeContext(), 1.07), "health.bills_more|7%");
});

test("a bill below our count is named with its share", () => {
  assert.equal(describeCalibration(makeContext(), 0.9), "health.bills_less|10%");
});

test("an agent without a bill has no calibration", () => {
  assert.equal(describeCalibration(makeContext(), undefined), "health.not_calibrated");
});

test("an agent without findings says so", () => {
  const text = collectText(
    view.render(makeContext(), { view: "health" }, { accounts: [], agents: [AGENT], memory: MEMORY }),
  );
  assert.ok(text.includes("health.no_findings"));
});

test("a finding without a text of its own is shown by its key", () => {
  const agent = { ...AGENT, findings: ["new_finding"] };
  const text = collectText(
    view.render(makeContext(), { view: "health" }, { accounts: [], agents: [agent], memory: MEMORY }),
  );
  assert.ok(text.includes("new_finding"));
});

test("memory that cannot be used says so", () => {
  const memory = { ...MEMORY, available: false, reason: "away" };
  const text = collectText(view.render(makeContext(), { view: "health" }, { accounts: [], agents: [], memory }));
  assert.ok(text.includes("health.memory_unavailable"));
});
