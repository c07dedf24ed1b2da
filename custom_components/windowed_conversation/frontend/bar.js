/**
 * The bar of a model's context: what takes how many tokens, and where the window and the model end.
 */

import { formatNumber, formatShare } from "./format.js";
import { h } from "./html.js";

/**
 * @typedef {import("./types.js").Figures} Figures
 * @typedef {import("./types.js").Weight} Weight
 * @typedef {{ name: string, tokens: number, share: number }} Part
 */

/** A model of more than this many times the largest request is not drawn to scale, because nothing else would be seen. */
const MAX_MODEL_FACTOR = 2;

/**
 * Return the parts of a model's context in the order in which they are sent, the marks in it, and its size.
 *
 * The parts sum to the total. That is the size of the model, or, if that is unknown or much larger, of all that a request
 * may have. Without a weight, which an agent without a model does not have, it is that of the window. What does not fit
 * enlarges the total, and the mark of the model is then inside the bar. A mark beyond the bar has no share.
 *
 * @param {Partial<Figures>} figures
 * @param {Partial<Weight> | null} weight
 * @returns {{ parts: Part[], marks: { name: string, tokens: number, share: number | null }[], total: number }}
 */
export function layoutBar(figures, weight) {
  const newest = Math.min(toCount(figures.newest_tokens), toCount(figures.tokens));
  const history = toCount(figures.tokens) - newest;
  const fixed = ["instructions", "home", "tools", "facts"].map((name) =>
    toPart(name, /** @type {any} */ (weight)?.[name]),
  );
  const fixedTokens = sum(fixed);
  const live = weight ? toCount(figures.live_tokens) : 0;
  const used = [
    ...(weight ? fixed : []),
    toPart("history", history),
    ...(weight ? [toPart("live", live)] : []),
    toPart("question", newest),
  ];
  // The reserve is at the end, so that the conversation grows towards the mark of its window.
  const reserve = weight ? [toPart("answer", weight.answer)] : [];
  const window = toCount(weight?.window) || toCount(figures.max_tokens);
  const model = toCount(weight?.model);
  const largest = fixedTokens + toCount(weight?.live_context) + window + toCount(weight?.answer);
  const room = model && model <= MAX_MODEL_FACTOR * largest ? model : largest;
  const taken = sum(used) + sum(reserve);
  const total = Math.max(room, taken);
  const parts = [...used, toPart("free", total - taken), ...reserve];
  const start = fixedTokens + live;
  const marks = [
    { name: "low_water", tokens: toCount(figures.low_water_tokens), at: start + toCount(figures.low_water_tokens) },
    { name: "window", tokens: window, at: start + window },
    { name: "model", tokens: model, at: model },
  ];
  return {
    parts: parts.map((part) => ({ ...part, share: share(part.tokens, total) })),
    marks: marks
      .filter(({ tokens }) => tokens)
      .map(({ at, ...mark }) => ({ ...mark, share: at > total ? null : share(at, total) })),
    total,
  };
}

/**
 * Return the nodes of a bar with its legend, which has the same numbers as text.
 *
 * @param {Pick<import("./types.js").Context, "hass" | "t">} context
 * @param {Partial<Figures>} figures
 * @param {Partial<Weight> | null} weight
 * @param {{ hasLegend?: boolean }} [options]
 */
export function renderBar({ hass, t }, figures, weight, { hasLegend = true } = {}) {
  const { parts, marks, total } = layoutBar(figures, weight);
  const free = parts.find(({ name }) => name === "free");
  const summary = t("bar.summary", {
    used: formatNumber(hass, total - (free?.tokens ?? 0)),
    total: formatNumber(hass, total),
    free: formatShare(hass, free?.share),
  });
  const bar = h(
    "div",
    { class: "bar-box", role: "img", "aria-label": summary, key: "bar" },
    h(
      "div",
      { class: "bar", "aria-hidden": "true" },
      parts.map((part) =>
        h("div", { key: part.name, class: `part part-${part.name}`, style: `inline-size: ${toPercent(part.share)}` }),
      ),
    ),
    marks.map(
      ({ name, share }) =>
        share !== null &&
        h("div", {
          key: name,
          class: `mark mark-${name}`,
          "aria-hidden": "true",
          style: `inset-inline-start: ${toPercent(share)}`,
        }),
    ),
  );
  if (!hasLegend) return [bar, h("p", { class: "small quiet", key: "summary" }, summary)];
  const rows = parts.map((part) => renderRow(hass, t, part, `part-${part.name}`, formatShare(hass, part.share)));
  const markRows = marks.map((mark) => renderRow(hass, t, mark, `mark mark-${mark.name}`, ""));
  return [
    bar,
    h("p", { class: "small", key: "summary" }, summary),
    h(
      "div",
      { class: "bar-grid", key: "legend" },
      renderLegend(t("bar.parts"), rows),
      markRows.length > 0 && renderLegend(t("bar.marks"), markRows),
    ),
  ];
}

/**
 * @param {string} caption
 * @param {import("./html.js").Node_[]} rows
 */
function renderLegend(caption, rows) {
  return h(
    "table",
    { class: "legend", key: caption },
    h("caption", { class: "visually-hidden" }, caption),
    h("tbody", null, rows),
  );
}

/**
 * @param {import("./types.js").Hass} hass
 * @param {import("./types.js").Translate} t
 * @param {{ name: string, tokens: number }} row
 * @param {string} swatch
 * @param {string} percent
 */
function renderRow(hass, t, row, swatch, percent) {
  return h(
    "tr",
    { key: row.name },
    h("th", { scope: "row" }, h("span", { class: `swatch ${swatch}`, "aria-hidden": "true" }), t(`bar.${row.name}`)),
    h("td", null, formatNumber(hass, row.tokens)),
    h("td", { class: "quiet" }, percent),
  );
}

/**
 * @param {string} name
 * @param {unknown} tokens
 */
function toPart(name, tokens) {
  return { name, tokens: toCount(tokens) };
}

/** @param {unknown} value */
function toCount(value) {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.round(value) : 0;
}

/** @param {{ tokens: number }[]} parts */
function sum(parts) {
  return parts.reduce((total, part) => total + part.tokens, 0);
}

/**
 * @param {number} tokens
 * @param {number} total
 */
function share(tokens, total) {
  return total ? Math.min(tokens / total, 1) : 0;
}

/** @param {number} value */
function toPercent(value) {
  return `${Math.round(value * 100_000) / 1000}%`;
}
