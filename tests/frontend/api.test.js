import assert from "node:assert/strict";
import { test } from "node:test";

import { call, describeError, loadTexts } from "../../custom_components/windowed_conversation/frontend/api.js";

const TEXTS = {
  "component.windowed_conversation.config_panel.panel.retry": "Try again",
  "component.windowed_conversation.selector.turn_route.options.model": "Model",
  "component.windowed_conversation.exceptions.no_model.message": "No model.",
};
const HASS = /** @type {any} */ ({
  callWS: async (message) => message,
  loadBackendTranslation: async (category) => (key) => (key.includes(`.${category}.`) ? (TEXTS[key] ?? "") : ""),
});
const t = (key) => key;

test("data cannot replace the type of a command", async () => {
  assert.deepEqual(await call(HASS, "forget", { ids: ["fact:7"], type: "auth" }), {
    ids: ["fact:7"],
    type: "windowed_conversation/forget",
  });
});

test("texts of the page and values of selectors are translated", async () => {
  const texts = await loadTexts(HASS);
  assert.deepEqual([texts.t("panel.retry"), texts.label("turn_route", "model")], ["Try again", "Model"]);
});

/**
 * Return a home that loads translations as the frontend does: a second request for a category does not wait for the first.
 */
function createSlowHass() {
  const begun = new Set();
  const loaded = new Set();
  const loadBackendTranslation = async (category) => {
    if (!begun.has(category)) {
      begun.add(category);
      await new Promise((resolve) => setTimeout(resolve));
      loaded.add(category);
    }
    const categories = new Set(loaded);
    return (key) => ([...categories].some((each) => key.includes(`.${each}.`)) ? (TEXTS[key] ?? "") : "");
  };
  return /** @type {any} */ ({ language: "en", loadBackendTranslation });
}

test("two cards that load their texts at once both have them", async () => {
  const hass = createSlowHass();
  const cards = await Promise.all([loadTexts(hass), loadTexts(hass)]);
  assert.deepEqual(
    cards.map(({ t, label }) => [t("panel.retry"), label("turn_route", "model")]),
    [
      ["Try again", "Model"],
      ["Try again", "Model"],
    ],
  );
});

test("texts that could not be loaded are loaded again", async () => {
  const refuse = async () => Promise.reject(new Error("Connection lost"));
  await assert.rejects(loadTexts({ ...HASS, loadBackendTranslation: refuse }));
  assert.equal((await loadTexts(HASS)).t("panel.retry"), "Try again");
});

test("an unknown key or value is shown as it is", async () => {
  const texts = await loadTexts(HASS);
  assert.deepEqual([texts.t("panel.x"), texts.label("turn_route", "x")], ["panel.x", "x"]);
});

test("an error with a translation is shown in the language of the user", async () => {
  const error = {
    code: "home_assistant_error",
    message: "raw",
    translation_key: "no_model",
    translation_domain: "windowed_conversation",
  };
  assert.equal(await describeError(HASS, t, error), "No model.");
});

test("an error without a translation is shown as the server wrote it", async () => {
  assert.equal(await describeError(HASS, t, { code: "x", message: "Broken" }), "Broken");
});

test("missing rights and a lost connection have texts", async () => {
  assert.equal(await describeError(HASS, t, { code: "unauthorized", message: "Unauthorized" }), "panel.unauthorized");
  assert.equal(await describeError(HASS, t, 3), "panel.connection_lost");
});

test("an error of nothing has a text", async () => {
  assert.equal(await describeError(HASS, t, undefined), "panel.failed");
});
