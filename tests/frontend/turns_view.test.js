import assert from "node:assert/strict";
import { test } from "node:test";

import {
  buildQuery,
  listPeople,
  loadMore,
  view,
} from "../../custom_components/windowed_conversation/frontend/turns_view.js";
import { makeContext, TURN } from "./contexts.js";
import { collectText, findElements } from "./nodes.js";

const PAGE = { turns: [TURN], next: null, errors: {} };

test("the query without filters asks for a page of all turns", () => {
  assert.deepEqual(buildQuery({}), { limit: 50 });
});

test("the query has the filters of the address, with whole days", () => {
  assert.deepEqual(
    buildQuery({ agent: "conversation.one", route: "model", since: "2026-01-01", until: "2026-01-02" }),
    {
      limit: 50,
      entity_id: ["conversation.one"],
      route: "model",
      since: "2026-01-01T00:00:00",
      until: "2026-01-02T23:59:59.999",
    },
  );
});

test("a route that does not exist is not asked for", () => {
  assert.equal("route" in buildQuery({ route: "<img>" }), false);
});

test("only people with a user can be chosen", () => {
  const states = {
    "person.b": { attributes: { user_id: "2", friendly_name: "Berta" } },
    "person.a": { attributes: { user_id: "1", friendly_name: "Anna" } },
    "person.c": { attributes: {} },
    "light.a": { attributes: { user_id: "3" } },
  };
  assert.deepEqual(listPeople(states), [
    ["person.a", "Anna"],
    ["person.b", "Berta"],
  ]);
});

test("a row says who answered and why in words", () => {
  const t = (key) => (key === "reasons.no_local_match" ? "no sentence fits" : key);
  const text = collectText(view.render(makeContext({}, { t }), { view: "turns" }, PAGE)).join(" ");
  assert.match(text, /turn_route:model no sentence fits/);
});

test("a row names memory where that has answered", () => {
  const turn = { ...TURN, route: "local", reason: "memory_request" };
  const text = collectText(view.render(makeContext(), { view: "turns" }, { ...PAGE, turns: [turn] }));
  assert.ok(text.includes("panel.tab_memory"));
});

test("a row opens the reasons of its turn", () => {
  const links = findElements(view.render(makeContext(), { view: "turns" }, PAGE), ({ tag }) => tag === "a");
  assert.equal(links[0].props.href, "?view=why&turn=t1");
});

test("only administrators filter by person", () => {
  const text = collectText(view.render(makeContext(), { view: "turns" }, PAGE));
  assert.equal(text.includes("turns.person"), false);
});

test("a failed turn names its error in words", async () => {
  const failed = { ...TURN, outcome: "error", error: "unavailable" };
  const context = makeContext({ list_turns: { turns: [failed], next_after: null } });
  const data = await view.load(context, {});
  assert.ok(collectText(view.render(context, { view: "turns" }, data)).includes("described unavailable"));
});

test("the next page is appended", async () => {
  const context = makeContext({ list_turns: { turns: [{ ...TURN, turn_id: "t2" }], next_after: null } });
  const data = { turns: [TURN], next: "t1", errors: {} };
  await loadMore(context, { view: "turns" }, data);
  assert.deepEqual(context.calls, [["list_turns", { limit: 50, after: "t1" }]]);
  assert.deepEqual(
    data.turns.map((turn) => turn.turn_id),
    ["t1", "t2"],
  );
});

test("a failure of the next page is said and keeps the turns", async () => {
  const context = makeContext({ list_turns: new Error("gone") });
  const data = { turns: [TURN], next: "t1", errors: {} };
  await loadMore(context, { view: "turns" }, data);
  assert.deepEqual(context.said, ["described gone"]);
  assert.equal(data.turns.length, 1);
});
