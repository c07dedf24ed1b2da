import assert from "node:assert/strict";
import { test } from "node:test";

import {
  findAgent,
  formatUrl,
  onFollow,
  parseState,
  patchState,
} from "../../custom_components/windowed_conversation/frontend/state.js";

const BASE = "/windowed-conversation";

test("a state survives its address", () => {
  const state = { view: "turns", agent: "conversation.kitchen", since: "2026-01-31T18:00:00+01:00", tool: "a&b=c" };
  const url = new URL(formatUrl(BASE, state), "http://home");
  assert.deepEqual(parseState(BASE, url.pathname, url.search), state);
});

test("the address of the page alone is the first view", () => {
  assert.deepEqual(parseState(BASE, BASE, ""), { view: "memory" });
});

test("a path that is no view is the target of Visit", () => {
  assert.deepEqual(parseState(BASE, `${BASE}/01J%20X`, ""), { view: "turns", target: "01J X" });
});

test("a query cannot set the view or the target", () => {
  assert.deepEqual(parseState(BASE, `${BASE}/costs`, "?view=../x&target=y"), { view: "costs" });
});

test("a value that is too long is not read", () => {
  assert.deepEqual(parseState(BASE, `${BASE}/turns`, `?tool=${"x".repeat(301)}`), { view: "turns" });
});

test("a malformed path is kept as it is", () => {
  assert.equal(parseState(BASE, `${BASE}/%E0%A4%A`, "").target, "%E0%A4%A");
});

test("a patch of null removes a key", () => {
  assert.deepEqual(patchState({ view: "turns", tool: "x", agent: "y" }, { tool: null }), { view: "turns", agent: "y" });
});

test("another view begins without the details of the previous one", () => {
  assert.deepEqual(patchState({ view: "turns", tool: "x" }, { view: "costs" }), { view: "costs" });
});

test("a patch removes the target", () => {
  assert.deepEqual(patchState({ view: "conversation", target: "01J" }, { agent: "y" }), {
    view: "conversation",
    agent: "y",
  });
});

const AGENT = /** @type {any} */ ({ id: "01AGENT", entity_id: "conversation.kitchen", device_id: "device" });
const DEVICES = { device: { config_entries: ["01ACCOUNT"] } };

test("an agent is found by its own id", () => {
  assert.equal(findAgent("01AGENT", [AGENT], {}), "conversation.kitchen");
});

test("an agent is found by the id of its account", () => {
  assert.equal(findAgent("01ACCOUNT", [AGENT], DEVICES), "conversation.kitchen");
});

test("an unknown id finds no agent", () => {
  assert.equal(findAgent("01OTHER", [AGENT], DEVICES), undefined);
});

test("a click on a link with Ctrl is left to the browser", () => {
  let isPrevented = false;
  const event = /** @type {any} */ ({
    ctrlKey: true,
    button: 0,
    preventDefault: () => {
      isPrevented = true;
    },
  });
  onFollow(() => assert.fail("followed"))(event);
  assert.equal(isPrevented, false);
});
