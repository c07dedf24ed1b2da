import assert from "node:assert/strict";
import { test } from "node:test";

import { view } from "../../custom_components/windowed_conversation/frontend/commands_view.js";
import { makeContext } from "./contexts.js";
import { collectText } from "./nodes.js";

const GROUP = {
  said: "make it cosy",
  count: 4,
  cost: 0.0123,
  last: "2026-01-31T18:00:00+00:00",
  tool: "HassTurnOn",
  target: { entity_id: "light.lamp", name: "Lamp" },
  sentence: "turn on the lamp",
};

function renderText(...groups) {
  return collectText(view.render(makeContext(), { view: "commands" }, { groups })).join("\n");
}

test("a group has the sentence, how often it was said, for how much, and what it did", () => {
  const text = renderText(GROUP);
  for (const part of ["make it cosy", "commands.often|4", "$0.0123", "commands.did_with|HassTurnOn|Lamp"]) {
    assert.ok(text.includes(part), part);
  }
});

test("a group has the sentence of Home Assistant and a link to the aliases", () => {
  const text = renderText(GROUP);
  assert.ok(text.includes("commands.sentence|turn on the lamp"));
  assert.ok(text.includes("commands.aliases|Lamp"));
});

test("a group without a target, a sentence, and a cost has none", () => {
  const text = renderText({ ...GROUP, cost: null, target: null, sentence: null });
  assert.ok(text.includes("commands.did|HassTurnOn"));
  assert.doesNotMatch(text, /commands\.sentence|commands\.aliases|\$/);
});

test("without commands, a sentence says so and no other speaks of them", () => {
  assert.ok(renderText().includes("commands.none"));
  assert.doesNotMatch(renderText(), /commands\.about|commands\.where/);
});
