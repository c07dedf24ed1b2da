import assert from "node:assert/strict";
import { test } from "node:test";

import { buildQuery, loadMore, view } from "../../custom_components/windowed_conversation/frontend/turns_view.js";
import { makeContext, TURN } from "./contexts.js";
import { collectText, findElements } from "./nodes.js";

const SAID = { ...TURN, text: "shown", said: "is it open?", answer: "It is closed." };
const PAGE = { turns: [SAID], next: null, errors: {}, opened: null, problem: "" };
const DETAILS = { ...TURN, text: "not_kept", waterfall: [], attempts: [], context: null };

function renderText(data, context = makeContext()) {
  return collectText(view.render(context, { view: "turns" }, { ...PAGE, ...data }));
}

function findRows(data) {
  const nodes = view.render(makeContext(), { view: "turns" }, { ...PAGE, ...data });
  return findElements(nodes, ({ props }) => props.class === "turn");
}

test("the query without filters asks for a page of turns without background work", () => {
  assert.deepEqual(buildQuery({}), { limit: 50 });
});

test("the query has the filters of the address, with a whole day", () => {
  assert.deepEqual(buildQuery({ agent: "conversation.one", outcome: "error", day: "2026-01-01", background: "1" }), {
    limit: 50,
    entity_id: ["conversation.one"],
    outcome: "error",
    background: true,
    since: "2026-01-01T00:00:00",
    until: "2026-01-01T23:59:59.999",
  });
});

test("a result that does not exist is not asked for", () => {
  assert.equal("outcome" in buildQuery({ outcome: "<img>" }), false);
});

test("a row has what was said, the answer, who spoke, who answered and why", () => {
  const text = renderText({});
  for (const part of ["is it open?", "It is closed.", "Anna", "turn_route:model: no_local_match"]) {
    assert.ok(text.includes(part), part);
  }
});

test("a row names memory where that has answered", () => {
  const turn = { ...SAID, route: "local", reason: "memory_request" };
  assert.ok(renderText({ turns: [turn] }).includes("panel.tab_memory: memory_request"));
});

test("a row names the automation that asked", () => {
  assert.ok(renderText({ turns: [{ ...SAID, person: null, automation: "Good morning" }] }).includes("Good morning"));
});

test("a row of another person says why it has no words", () => {
  assert.ok(renderText({ turns: [{ ...TURN, text: "private" }] }).includes("turns.private"));
});

test("a row without words names the tools", () => {
  assert.ok(renderText({ turns: [{ ...TURN, text: "not_kept" }] }).includes("HassTurnOn"));
  assert.ok(!renderText({}).includes("HassTurnOn"));
  const local = { ...TURN, route: "local", tools: ["HassTurnOff"], text: "not_kept" };
  assert.ok(renderText({ turns: [local] }).includes("HassTurnOff"));
});

test("a row opens its turn, and closes it", () => {
  const opened = { turn: { ...DETAILS, ...SAID }, errors: {}, sent: {} };
  const [closed] = findRows({});
  const [open] = findRows({ opened });
  assert.equal(closed.props.href, "?turn=t1");
  assert.deepEqual([closed.props["aria-expanded"], open.props["aria-expanded"]], ["false", "true"]);
});

test("the open turn has its words though the record has none", async () => {
  const context = makeContext({ turns: { turns: [SAID], next_after: null }, get_turn: DETAILS });
  const data = await view.load(context, { view: "turns", turn: "t1" });
  assert.deepEqual([data.opened.turn.text, data.opened.turn.said], ["shown", "is it open?"]);
});

test("an open turn that is not on the page comes first", async () => {
  const turns = (query) => ({ turns: query.turn_id ? [{ ...SAID, turn_id: "t9" }] : [SAID], next_after: null });
  const context = makeContext({ turns, get_turn: { ...DETAILS, turn_id: "t9" } });
  const data = await view.load(context, { view: "turns", turn: "t9" });
  assert.deepEqual(
    data.turns.map((turn) => turn.turn_id),
    ["t9", "t1"],
  );
});

test("a turn that cannot be shown leaves the list", async () => {
  const context = makeContext({ turns: { turns: [SAID], next_after: null }, get_turn: new Error("unknown") });
  const text = renderText(await view.load(context, { view: "turns", turn: "t9" }), context);
  assert.ok(text.includes("described unknown"));
  assert.ok(text.includes("is it open?"));
});

test("a failed turn names its error in words", async () => {
  const failed = { ...SAID, outcome: "error", error: "unavailable" };
  const context = makeContext({ turns: { turns: [failed], next_after: null } });
  assert.ok(renderText(await view.load(context, {}), context).includes("described unavailable"));
});

test("a turn that ends loads the list again, unless more pages are shown", () => {
  const more = Array.from({ length: 51 }, () => SAID);
  assert.equal(view.receive({}, PAGE).isStale, true);
  assert.equal(view.receive({}, { ...PAGE, turns: more }).isStale, false);
});

test("the next page is appended", async () => {
  const context = makeContext({ turns: { turns: [{ ...SAID, turn_id: "t2" }], next_after: null } });
  const data = { ...PAGE, turns: [SAID], next: "t1" };
  await loadMore(context, { view: "turns" }, data);
  assert.deepEqual(context.calls, [["turns", { limit: 50, after: "t1" }]]);
  assert.deepEqual(
    data.turns.map((turn) => turn.turn_id),
    ["t1", "t2"],
  );
});

test("a failure of the next page is said and keeps the turns", async () => {
  const context = makeContext({ turns: new Error("gone") });
  const data = { ...PAGE, turns: [SAID], next: "t1" };
  await loadMore(context, { view: "turns" }, data);
  assert.deepEqual(context.said, ["described gone"]);
  assert.equal(data.turns.length, 1);
});
