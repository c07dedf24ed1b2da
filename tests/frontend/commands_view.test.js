import assert from "node:assert/strict";
import { test } from "node:test";

import { describeSuggestion, view } from "../../custom_components/windowed_conversation/frontend/commands_view.js";
import { makeContext } from "./contexts.js";
import { collectText } from "./nodes.js";

const GROUP = {
  said: "make it cosy",
  count: 4,
  last: "2026-01-31T18:00:00+00:00",
  tool: "HassTurnOn",
  target: { entity_id: "light.lamp", name: "Lamp" },
  suggestion: { kind: "alias", entity_id: "light.lamp", alias: "cosy light" },
};

test("an alias is proposed for its entity", () => {
  assert.equal(describeSuggestion(makeContext(), GROUP), "commands.alias|cosy light|Lamp");
});

test("a sentence of Home Assistant is proposed", () => {
  const suggestion = { kind: "sentence", sentence: "turn on the lamp" };
  assert.equal(describeSuggestion(makeContext(), { ...GROUP, suggestion }), "commands.sentence|turn on the lamp");
});

test("a group without a suggestion says so", () => {
  assert.equal(describeSuggestion(makeContext(), { ...GROUP, suggestion: null }), "commands.no_suggestion");
});

test("a group has the sentence, how often it was said, and what it did", () => {
  const text = collectText(view.render(makeContext(), { view: "commands" }, { groups: [GROUP] }));
  for (const part of ["make it cosy", "commands.often|4", "commands.did_with|HassTurnOn|Lamp"]) {
    assert.ok(text.includes(part), part);
  }
});

test("without commands, a sentence says so", () => {
  assert.ok(collectText(view.render(makeContext(), { view: "commands" }, { groups: [] })).includes("commands.none"));
});
