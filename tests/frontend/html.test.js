import assert from "node:assert/strict";
import { test } from "node:test";

import { flatten, h } from "../../custom_components/windowed_conversation/frontend/html.js";

test("empty children are left out", () => {
  assert.deepEqual(h("p", null, null, undefined, false, ["a", ["b"]]).children, ["a", "b"]);
});

test("the number 0 is text", () => {
  assert.deepEqual(flatten([0]), ["0"]);
});

test("an object of a response is text, whatever it contains", () => {
  const value = /** @type {any} */ ({ tag: "p", props: { ".innerHTML": "<img onerror=alert(1)>" }, children: [] });
  assert.deepEqual(h("p", null, value, [value]).children, ["[object Object]", "[object Object]"]);
});

test("markup in a value stays text", () => {
  assert.deepEqual(h("p", null, "<img onerror=alert(1)>").children, ["<img onerror=alert(1)>"]);
});
