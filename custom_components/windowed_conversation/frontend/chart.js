/**
 * A chart of bars over days or months, stacked by groups, with axes. A table beside it has the numbers.
 */

import { h } from "./html.js";

/**
 * @typedef {{ name: string, values: number[] }} Series the values of a group, one for each bar
 */

/** With a contrast of 3:1 to light and to dark backgrounds. */
const COLORS = ["#4a78d0", "#c2571a", "#1c8f86", "#9a5fd0", "#5a8a1e", "#7d7d7d"];
const TICKS = 4;
/** How many bars are named below the axis. */
const MAX_LABELS = 5;

/**
 * Return the end of an axis for values up to `largest`: 1, 2, 2.5 or 5 times a power of ten.
 *
 * @param {number} largest
 */
export function findAxisEnd(largest) {
  if (!(largest > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  const factor = [1, 2, 2.5, 5, 10].find((each) => each * power >= largest * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/**
 * Return the series with the largest sums, and the sum of the others as the last one, if there are more than colours.
 *
 * @param {Series[]} series
 * @param {string} others
 * @returns {Series[]}
 */
export function limitSeries(series, others) {
  const sum = (/** @type {Series} */ { values }) => values.reduce((total, value) => total + value, 0);
  const sorted = series.toSorted((one, other) => sum(other) - sum(one));
  if (sorted.length <= COLORS.length) return sorted;
  const rest = sorted.splice(COLORS.length - 1);
  const values = rest[0]?.values.map((_, place) => rest.reduce((total, each) => total + (each.values[place] ?? 0), 0));
  return [...sorted, { name: others, values: values ?? [] }];
}

/**
 * @param {string} title
 * @param {string[]} labels those of the bars
 * @param {Series[]} series at most as many as there are colours
 * @param {(value: number) => string} format
 * @param {string} [unit] what the axis counts, unless `format` says it
 */
export function renderChart(title, labels, series, format, unit) {
  const totals = labels.map((_, place) => series.reduce((sum, { values }) => sum + (values[place] ?? 0), 0));
  const end = findAxisEnd(Math.max(0, ...totals));
  const ticks = Array.from({ length: TICKS + 1 }, (_, place) => (end * (TICKS - place)) / TICKS);
  const step = Math.ceil(labels.length / MAX_LABELS);
  return h(
    "figure",
    { class: "chart", key: "chart", role: "img", "aria-label": [title, unit].filter(Boolean).join(", ") },
    unit && h("div", { class: "unit small quiet" }, unit),
    h(
      "div",
      { class: "axis small quiet" },
      ticks.map((value) => h("span", null, format(value))),
    ),
    h(
      "div",
      { class: "plot" },
      labels.map((label, place) =>
        h(
          "div",
          { class: "column", title: `${label}: ${format(totals[place] ?? 0)}` },
          series.map(({ values }, number) =>
            h("div", {
              style: `block-size: ${(((values[place] ?? 0) / end) * 100).toFixed(2)}%; background: ${COLORS[number]}`,
            }),
          ),
        ),
      ),
    ),
    h(
      "div",
      { class: "names small quiet" },
      labels.map((label, place) => h("span", null, place % step ? "" : label)),
    ),
    series.length > 1 &&
      h(
        "figcaption",
        { class: "chips" },
        series.map(({ name }, number) =>
          h("span", { class: "chip", dir: "auto" }, h("i", { style: `background: ${COLORS[number]}` }), name),
        ),
      ),
  );
}
