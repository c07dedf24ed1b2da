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
  reason: null,
  facts: 1,
  turns: 2,
  summaries: 0,
  size: 2_000_000,
  unindexed: 0,
  pending_writes: 0,
};
const FIGURES = { exchanges: 3, tokens: 300, evicted: { exchanges: 2, tokens: 100 }, trims: 1 };
const AGENT = {
  entity_id: "conversation.one",
  name: "One",
  model: "small",
  context_tokens: 8192,
  has_learned_context: true,
  calibration: null,
  cache: { input_tokens: 100, cached_tokens: 40 },
  window: FIGURES,
  findings: [],
};
const ISSUES = { window_stays_full: "The window stays full", memory_away: "Memory is away" };

function renderText(data) {
  const localize = (key) => ISSUES[key] ?? "";
  const shown = { accounts: [], agents: [AGENT], memory: MEMORY, localize, ...data };
  return collectText(view.render(makeContext(), { view: "health" }, shown));
}

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

test("what was learned of the model's tokens is named by kind of text", () => {
  const calibration = { is_learned: true, factors: { prose: 1.07, tools: 0.9 } };
  assert.equal(describeCalibration(makeContext(), calibration), "health.kind_prose +7%, health.kind_tools -10%");
});

test("an agent that learned nothing has no figures to show", () => {
  assert.equal(describeCalibration(makeContext(), { is_learned: false, factors: {} }), "");
});

test("an agent without findings says so", () => {
  assert.ok(renderText({}).includes("health.no_findings"));
});

test("a finding has the title of its issue", () => {
  assert.ok(renderText({ agents: [{ ...AGENT, findings: ["window_stays_full"] }] }).includes("The window stays full"));
});

test("a finding without a title is shown by its key", () => {
  assert.ok(renderText({ agents: [{ ...AGENT, findings: ["new_finding"] }] }).includes("new_finding"));
});

test("the share of the cache is that of the billed input", () => {
  assert.ok(renderText({}).includes("40%"));
});

test("memory that cannot be used has the title of its issue", () => {
  const memory = { ...MEMORY, reason: "away", facts: null };
  assert.ok(renderText({ memory }).includes("Memory is away"));
});

test("memory that is closed for another reason cannot be used", () => {
  const memory = { ...MEMORY, reason: "closed", facts: null };
  assert.ok(renderText({ memory }).includes("health.memory_unavailable"));
});
