/**
 * Where the time of a turn went, as bars and as a table.
 */

import { formatNumber } from "./format.js";
import { h } from "./html.js";
import { renderTable } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {{
 *   step: string, name?: string, start: number, end: number, first_byte?: number | null, first_token?: number | null,
 * }} Step
 * @typedef {{ left: number, width: number, firstToken: number | null }} Place in percent of the whole turn
 */

// A step that takes no time still has to be seen.
const MIN_WIDTH = 0.5;

/**
 * Return the places of the steps. The turn ends with its last step, and not before `duration`.
 *
 * @param {Step[]} steps
 * @param {number | null} [duration]
 * @returns {Place[]}
 */
export function layoutSteps(steps, duration) {
  const total = Math.max(duration ?? 0, ...steps.map((step) => step.end));
  const toPercent = (/** @type {number} */ seconds) =>
    total > 0 ? Math.max(0, Math.min(100, (seconds / total) * 100)) : 0;
  return steps.map(({ start, end, first_token: token }) => {
    const left = Math.min(toPercent(start), 100 - MIN_WIDTH);
    const width = Math.max(toPercent(end) - left, MIN_WIDTH);
    return { left, width, firstToken: typeof token === "number" ? toPercent(token) : null };
  });
}

/**
 * @param {Context} context
 * @param {Step[]} steps
 * @param {number | null} duration
 */
export function renderWaterfall(context, steps, duration) {
  const { t } = context;
  const places = layoutSteps(steps, duration);
  const seconds = (/** @type {number | null | undefined} */ value) =>
    formatNumber(context.hass, value, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const columns = [
    { label: t("why.step") },
    { label: t("why.start"), isNumber: true },
    { label: t("why.first_token"), isNumber: true },
    { label: t("why.end"), isNumber: true },
  ];
  const rows = steps.map((step, place) => ({
    key: place,
    cells: [nameStep(context, step), seconds(step.start), seconds(step.first_token), seconds(step.end)],
  }));
  return [
    h(
      "div",
      { class: "steps", "aria-hidden": "true", key: "steps" },
      steps.map((step, place) => renderStep(nameStep(context, step), step.step, places[place])),
    ),
    h("details", { key: "table" }, h("summary", null, t("why.seconds")), renderTable(t("why.seconds"), columns, rows)),
  ];
}

/**
 * @param {string} name
 * @param {string} kind
 * @param {Place | undefined} place
 */
function renderStep(name, kind, place) {
  if (!place) return null;
  const style = `inset-inline-start: ${place.left.toFixed(2)}%; inline-size: ${place.width.toFixed(2)}%`;
  return h(
    "div",
    { class: "step" },
    h("span", { class: "small", dir: "auto" }, name),
    h(
      "div",
      { class: "track" },
      h("div", { class: `span span-${kind}`, style }),
      place.firstToken !== null &&
        h("div", { class: "tick", style: `inset-inline-start: ${place.firstToken.toFixed(2)}%` }),
    ),
  );
}

/**
 * @param {Context} context
 * @param {Step} step
 */
function nameStep({ t }, { step, name }) {
  return name ?? t(`why.step_${step}`);
}
