import assert from "node:assert/strict";
import { test } from "node:test";

import { layoutBar, renderBar } from "../../custom_components/windowed_conversation/frontend/bar.js";
import { PART_COLORS } from "../../custom_components/windowed_conversation/frontend/style.js";
import { collectText, PROFILE } from "./nodes.js";

const FIGURES = { tokens: 900, newest_tokens: 100, live_tokens: 60, max_tokens: 2000, low_water_tokens: 1500 };
const WEIGHT = { instructions: 200, home: 300, tools: 400, facts: 50, window: 2000, answer: 500, model: 6000 };
const SIZES = [undefined, null, Number.NaN, -5, 0, 1, 333, 1e9];

/** @param {{ parts: { name: string, tokens: number }[] }} layout */
function tokensByName({ parts }) {
  return Object.fromEntries(parts.map(({ name, tokens }) => [name, tokens]));
}

/** @param {number} seed */
function* drawSizes(seed) {
  for (let state = seed; ; state = (state * 48271) % 2147483647) yield SIZES[state % SIZES.length];
}

test("the parts of a bar are those of the request", () => {
  assert.deepEqual(tokensByName(layoutBar(FIGURES, WEIGHT)), {
    instructions: 200,
    home: 300,
    tools: 400,
    facts: 50,
    history: 800,
    live: 60,
    question: 100,
    free: 3590,
    answer: 500,
  });
});

test("the reserve for the answer is at the end of the bar", () => {
  assert.equal(layoutBar(FIGURES, WEIGHT).parts.at(-1)?.name, "answer");
});

test("the marks are behind what is sent before the history", () => {
  const { marks, total } = layoutBar(FIGURES, WEIGHT);
  assert.deepEqual(
    marks.map(({ name, share }) => [name, Math.round((share ?? 0) * total)]),
    [
      ["low_water", 2510],
      ["window", 3010],
      ["model", 6000],
    ],
  );
});

test("a bar of a model of unknown size is as long as what a request may have", () => {
  assert.equal(layoutBar(FIGURES, { ...WEIGHT, model: null }).total, 200 + 300 + 400 + 50 + 2000 + 500);
});

test("a model that is far larger than any request is not drawn to scale", () => {
  const { marks, total } = layoutBar(FIGURES, { ...WEIGHT, model: 400_000 });
  assert.equal(total, 200 + 300 + 400 + 50 + 2000 + 500);
  assert.deepEqual(marks.at(-1), { name: "model", tokens: 400_000, share: null });
});

test("a bar without a model is the window", () => {
  const layout = layoutBar(FIGURES, null);
  assert.deepEqual(tokensByName(layout), { history: 800, question: 100, free: 1100 });
  assert.deepEqual(
    layout.marks.map(({ name, share }) => [name, share]),
    [
      ["low_water", 0.75],
      ["window", 1],
    ],
  );
});

test("a request that is larger than the model moves the mark of the model into the bar", () => {
  const { marks, total } = layoutBar({ ...FIGURES, tokens: 9000 }, WEIGHT);
  assert.ok(total > 6000);
  assert.equal(marks.find(({ name }) => name === "model")?.share, 6000 / total);
});

test("parts of any sizes are never negative and sum to the total", () => {
  const sizes = drawSizes(42);
  const draw = () => /** @type {any} */ (sizes.next().value);
  for (let round = 0; round < 2000; round += 1) {
    const figures = {
      tokens: draw(),
      newest_tokens: draw(),
      live_tokens: draw(),
      max_tokens: draw(),
      low_water_tokens: draw(),
    };
    const parts = { instructions: draw(), home: draw(), tools: draw(), facts: draw() };
    const weight = { ...parts, window: draw(), answer: draw(), model: draw() };
    for (const layout of [layoutBar(figures, weight), layoutBar(figures, null)]) {
      const found = JSON.stringify([figures, weight, layout]);
      assert.ok(
        layout.parts.every(({ tokens, share }) => tokens >= 0 && share >= 0 && share <= 1),
        found,
      );
      assert.ok(
        layout.marks.every(({ share }) => share === null || (share >= 0 && share <= 1)),
        found,
      );
      assert.equal(
        layout.parts.reduce((total, { tokens }) => total + tokens, 0),
        layout.total,
        found,
      );
    }
  }
});

test("the legend has each part and each mark with its number", () => {
  const text = collectText(renderBar({ hass: PROFILE, t: (key) => key }, FIGURES, WEIGHT));
  for (const expected of ["bar.history", "800", "bar.free", "3,590", "bar.window", "2,000", "bar.model", "6,000"]) {
    assert.ok(text.includes(expected), expected);
  }
});

/** @param {string} color */
function luminance(color) {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const value = Number.parseInt(color.slice(start, start + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

for (const background of ["#ffffff", "#1c1c1c"]) {
  test(`each part of a bar has a contrast of 3:1 to ${background}`, () => {
    for (const [name, color] of Object.entries(PART_COLORS)) {
      const [darker, lighter] = [luminance(color), luminance(background)].sort((one, other) => one - other);
      const contrast = (Number(lighter) + 0.05) / (Number(darker) + 0.05);
      assert.ok(contrast >= 3, `${name}: ${contrast}`);
    }
  });
}
