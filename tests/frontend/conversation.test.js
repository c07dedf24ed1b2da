import assert from "node:assert/strict";
import { test } from "node:test";

import {
  chooseEviction,
  parseExport,
} from "../../custom_components/windowed_conversation/frontend/conversation_actions.js";
import { renderExchanges, view } from "../../custom_components/windowed_conversation/frontend/conversation_view.js";
import {
  chooseConversation,
  extend,
  filterRows,
  isOnlyAbout,
  nameConversation,
  receive,
} from "../../custom_components/windowed_conversation/frontend/conversations.js";
import { collectText, findElements, PROFILE } from "./nodes.js";

const FIGURES = {
  exchanges: 3,
  tokens: 90,
  newest_tokens: 30,
  max_tokens: 300,
  evicted: { exchanges: 0, tokens: 0 },
  trims: 0,
};
const KITCHEN = {
  entity_id: "conversation.one",
  conversation_id: "kitchen",
  agent: "One",
  person: null,
  device: "Kitchen",
  source: "satellite",
  last_used: "2026-01-31T18:00:00+01:00",
  figures: FIGURES,
};
const ANNA = {
  ...KITCHEN,
  entity_id: "conversation.two",
  conversation_id: "a",
  person: "Anna",
  device: null,
  source: "person",
  last_used: "2026-01-31T16:30:00+00:00",
};
const ROWS = /** @type {any} */ ([KITCHEN, ANNA]);
const EXCHANGE = {
  time: null,
  said: "said",
  answer: "answer",
  is_cut: false,
  route: "model",
  tools: [],
  tokens: 30,
  messages: 2,
  tags: [],
  is_summary: false,
  is_incomplete: false,
  is_pinned: false,
};
const OPENED = /** @type {any} */ ({
  ...KITCHEN,
  weight: null,
  leaves_first: [7, 8],
  exchanges: [3, 2, 1].map((exchange) => ({ ...EXCHANGE, exchange, number: 10 - exchange })),
});
const CONTEXT = /** @type {any} */ ({
  hass: PROFILE,
  t: (key, placeholders = {}) => [key, ...Object.values(placeholders)].join(" "),
  label: (_selector, value) => value,
  link: () => "/",
  update: () => {},
  overview: { agents: [] },
});

test("conversations are filtered by agent and by who spoke", () => {
  assert.deepEqual(filterRows(ROWS, { agent: "conversation.two" }), [ANNA]);
  assert.deepEqual(filterRows(ROWS, { source: "satellite" }), [KITCHEN]);
});

test("the newest conversation is open until one is chosen", () => {
  assert.equal(chooseConversation(ROWS, {})?.conversation_id, "kitchen");
  assert.equal(chooseConversation(ROWS, { entity: "conversation.two", conversation: "a" })?.conversation_id, "a");
});

test("a conversation has the name of who speaks, or else its id", () => {
  assert.deepEqual([ANNA, KITCHEN, { ...KITCHEN, device: null }].map(nameConversation), ["Anna", "Kitchen", "kitchen"]);
});

const DATA = { rows: ROWS, opened: OPENED, removed: 0, messages: null, problem: "" };

test("an event updates the figures of the row and of the open conversation at once", () => {
  const event = { conversations: [{ ...KITCHEN, figures: /** @type {any} */ ({ tokens: 120 }) }] };
  const { data, isStale } = receive({}, DATA, event);
  assert.deepEqual([data.rows[0]?.figures.tokens, data.opened?.figures.tokens, isStale], [120, 120, true]);
});

test("an event of another conversation loads nothing again", () => {
  const state = { entity: "conversation.one", conversation: "kitchen" };
  assert.equal(receive(state, DATA, { conversations: [{ ...ANNA }] }).isStale, false);
});

test("an event sorts the conversations by their last use, in any time zone", () => {
  const event = { conversations: [{ ...ANNA, last_used: "2026-01-31T17:30:00+00:00" }] };
  assert.deepEqual(receive({}, DATA, event).data.rows.map(nameConversation), ["Anna", "Kitchen"]);
});

test("an event of the open conversation does not load the others again", () => {
  assert.equal(receive({}, DATA, { conversations: [{ ...KITCHEN }] }).needsAll, false);
});

test("the card has all it needs from an event of its own conversation", () => {
  const event = { conversations: [KITCHEN] };
  assert.equal(isOnlyAbout(ROWS[0], /** @type {any} */ (event), undefined), true);
});

test("the card loads again after an event of another conversation of its agents", () => {
  const event = /** @type {any} */ ({ conversations: [KITCHEN, ANNA] });
  assert.deepEqual(
    [undefined, "conversation.one", "conversation.two"].map((agent) => isOnlyAbout(ROWS[0], event, agent)),
    [false, true, false],
  );
});

test("the card loads again after its conversation was deleted", () => {
  const event = /** @type {any} */ ({ conversations: [{ ...KITCHEN, figures: null }] });
  assert.equal(isOnlyAbout(ROWS[0], event, undefined), false);
});

/** A conversation from its second last exchange on, with another one that has come since. */
const NEWEST = /** @type {any} */ ({
  ...KITCHEN,
  figures: { ...FIGURES, exchanges: 4 },
  weight: null,
  leaves_first: [7],
  exchanges: [2, 1].map((exchange) => ({ ...EXCHANGE, exchange, number: 11 - exchange, said: "new" })),
});

test("the newest exchanges follow those that are known, which are counted back from the newest one", () => {
  const { exchanges = [], leaves_first } = extend(OPENED, 0, NEWEST) ?? {};
  assert.deepEqual(
    exchanges.map(({ exchange, number, said }) => [exchange, number, said]),
    [
      [4, 7, "said"],
      [3, 8, "said"],
      [2, 9, "new"],
      [1, 10, "new"],
    ],
  );
  assert.deepEqual(leaves_first, [7]);
});

test("a conversation that has lost exchanges is not extended", () => {
  const figures = { ...NEWEST.figures, exchanges: 3, evicted: { exchanges: 1, tokens: 30 } };
  assert.equal(extend(OPENED, 0, { ...NEWEST, figures }), null);
});

test("a conversation with a summary in the place of an exchange is not extended", () => {
  const figures = { ...NEWEST.figures, evicted: { exchanges: 1, tokens: 30 } };
  assert.equal(extend(OPENED, 0, { ...NEWEST, figures }), null);
});

test("a turn reads only the newest exchanges of the open conversation", async () => {
  /** @type {unknown[]} */
  const calls = [];
  const call = async (/** @type {string} */ name, /** @type {unknown} */ data) => {
    calls.push([name, data]);
    return NEWEST;
  };
  const refreshed = await view.refresh?.({ ...CONTEXT, call }, {}, DATA);
  assert.equal(refreshed.opened.exchanges.length, 4);
  assert.deepEqual(calls, [["conversation", { entity_id: "conversation.one", conversation_id: "kitchen", after: 8 }]]);
});

test("an event of an unknown conversation loads again", () => {
  assert.equal(
    receive({ entity: "x", conversation: "y" }, DATA, { conversations: [{ ...ANNA, conversation_id: "new" }] }).isStale,
    true,
  );
});

test("the line of the next trim is below the last exchange that it evicts", () => {
  const nodes = renderExchanges(CONTEXT, {}, OPENED, null).flat().filter(Boolean);
  const place = nodes.findIndex((node) => /** @type {any} */ (node).children[0]?.props?.role === "separator");
  assert.equal(place, 2);
});

test("there is no line if the next trim evicts nothing", () => {
  const nodes = renderExchanges(CONTEXT, {}, { ...OPENED, leaves_first: [] }, null);
  assert.deepEqual(
    findElements(nodes, ({ props }) => props.role === "separator"),
    [],
  );
});

test("exchanges that have left are a count above the others", () => {
  const opened = {
    ...OPENED,
    figures: { ...FIGURES, evicted: { exchanges: 12, messages: 24, tokens: 800 }, trims: 2 },
  };
  const text = collectText(view.render(CONTEXT, {}, { ...DATA, opened }));
  assert.ok(text.indexOf("conversation.evicted 12 800 2") < text.indexOf("said"));
});

test("an exchange that is opened shows all of its messages", () => {
  const messages = [
    { role: "user", content: "<script>" },
    { role: "tool", name: "HassTurnOn", content: "done" },
  ];
  const text = collectText(renderExchanges(CONTEXT, { exchange: "9" }, OPENED, messages));
  assert.ok(text.includes("<script>") && text.includes("conversation.tool HassTurnOn"));
});

test("an exchange is evicted first by a tag", () => {
  assert.deepEqual(chooseEviction({ tags: [] }), { key: "evict_first", add: ["ephemeral"], remove: [] });
});

test("an exchange that leaves first is evicted in order by removing its tag", () => {
  assert.deepEqual(chooseEviction({ tags: ["ephemeral"] }), {
    key: "evict_in_order",
    add: [],
    remove: ["ephemeral"],
  });
});

test("an exported file is read", () => {
  assert.deepEqual(parseExport('{"version": 1}'), { version: 1 });
});

test("a file that is no JSON object is refused", () => {
  assert.equal(parseExport("{"), null);
  assert.equal(parseExport("[1]"), null);
});

test("a file that Home Assistant's connection cannot carry is refused", () => {
  assert.equal(parseExport(JSON.stringify({ text: "x".repeat(4_000_001) })), null);
});
