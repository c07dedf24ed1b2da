import assert from "node:assert/strict";
import { test } from "node:test";
import {
  compareTokens,
  findContent,
  formatValue,
  loadRequest,
  nameLanguage,
  nameSpeaker,
  renderDetails,
  splitLines,
} from "../../custom_components/windowed_conversation/frontend/turn_details.js";
import { layoutSteps } from "../../custom_components/windowed_conversation/frontend/waterfall.js";
import { makeContext, TURN } from "./contexts.js";
import { collectText } from "./nodes.js";

const ATTEMPT = {
  purpose: "answer",
  model: "small",
  outcome: "answered",
  error: null,
  planned_tokens: 1000,
  usage: { input: 1100, cached: 400, output: 20 },
};
const OPENED = {
  ...TURN,
  text: "shown",
  said: "<img onerror=alert(1)>",
  answer: "no",
  tool_calls: [{ name: "HassTurnOn", arguments: { name: "lamp" }, result: '{"success":true}' }],
  waterfall: [{ step: "request", start: 0.5, first_token: 0.75, end: 1 }],
  attempts: [ATTEMPT],
  context: { speaker: "Anna", language: "de", facts: ["Anna likes tea"], recalled: [], states: "lamp: on" },
};
const DATA = { turn: OPENED, errors: {}, sent: {} };

function renderText(turn) {
  return collectText(renderDetails(makeContext(), { ...DATA, turn: { ...OPENED, ...turn } }));
}

test("the name of a speaker says what they are known by, unless they are signed in", () => {
  const sources = ["login", null, "satellite", "pipeline", "entity", "prefix"];
  assert.deepEqual(
    sources.map((source) => nameSpeaker(makeContext(), { ...TURN, known_by: source })),
    [
      "Anna",
      "Anna",
      "Anna, turns.known_by_device",
      "Anna, turns.known_by_device",
      "Anna, turns.known_by_voice",
      "Anna, turns.known_by_voice",
    ],
  );
});

test("steps are placed in percent of the turn", () => {
  assert.deepEqual(layoutSteps([{ step: "tool", start: 1, end: 2 }], 4), [{ left: 25, width: 25, firstToken: null }]);
});

test("a step after the end of the turn makes it longer", () => {
  assert.equal(layoutSteps([{ step: "tool", start: 0, end: 4 }], 2)[0].width, 100);
});

test("the first token is marked in a request", () => {
  assert.equal(layoutSteps([{ step: "request", start: 0, first_token: 1, end: 4 }])[0].firstToken, 25);
});

test("a step at the end that takes no time can be seen", () => {
  assert.deepEqual(layoutSteps([{ step: "tool", start: 4, end: 4 }], 4), [
    { left: 99.5, width: 0.5, firstToken: null },
  ]);
});

test("steps that all take no time have places", () => {
  assert.deepEqual(layoutSteps([{ step: "tool", start: 0, end: 0 }], 0), [{ left: 0, width: 0.5, firstToken: null }]);
});

test("billed tokens are compared with our count", () => {
  assert.deepEqual(compareTokens(ATTEMPT), { planned: 1000, input: 1100, cached: 400, output: 20, difference: 0.1 });
});

test("a request without a bill has no difference", () => {
  assert.equal(compareTokens({ ...ATTEMPT, usage: null }).difference, null);
});

test("a request without our count has no difference", () => {
  assert.equal(compareTokens({ usage: ATTEMPT.usage }).difference, null);
});

test("a result in JSON is indented", () => {
  assert.equal(formatValue('{"a":1}'), '{\n  "a": 1\n}');
});

test("a result that is only a number stays as it is", () => {
  assert.equal(formatValue("1e3"), "1e3");
});

test("a message of text alone is shown as text", () => {
  assert.equal(findContent({ role: "user", content: "hello" }), "hello");
});

test("a message with more than text is shown whole", () => {
  const message = { role: "assistant", content: "", tool_calls: [] };
  assert.equal(findContent(message), message);
});

test("facts that were sent as one text are shown line by line", () => {
  assert.deepEqual(splitLines("Anna likes tea\n\nThe bins are blue\n"), ["Anna likes tea", "The bins are blue"]);
});

test("a language has its name", () => {
  assert.equal(nameLanguage("en", "de"), "German");
});

test("a language that is none keeps its code", () => {
  assert.equal(nameLanguage("en", "not a code"), "not a code");
});

test("a request is loaded when it is opened, once", async () => {
  const sent = { system: "s", tools: [], messages: [], omitted_messages: 0 };
  const context = makeContext({ get_turn: { ...OPENED, sent } });
  const data = { ...DATA, sent: {} };
  await loadRequest(context, data, 1);
  await loadRequest(context, data, 1);
  assert.deepEqual(context.calls, [["get_turn", { turn_id: "t1", request: 1 }]]);
  assert.equal(data.sent[1], sent);
});

test("what was said stays text", () => {
  assert.ok(renderText({}).includes("<img onerror=alert(1)>"));
});

test("what the model was given is shown", () => {
  const text = renderText({});
  assert.ok(text.includes("Anna likes tea"));
  assert.ok(text.includes("lamp: on"));
});

test("another person's turn says why there is no text", () => {
  const text = renderText({ text: "private", said: undefined, tool_calls: undefined, context: null });
  assert.ok(text.includes("turns.private"));
});

test("agents that failed before are named with the reason", () => {
  const failures = [{ agent: "conversation.one", error: "unavailable" }];
  const data = { ...DATA, turn: { ...OPENED, failures }, errors: { unavailable: "It is away." } };
  assert.ok(collectText(renderDetails(makeContext(), data)).includes("One: It is away."));
});
