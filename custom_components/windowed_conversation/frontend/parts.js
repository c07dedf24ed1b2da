/**
 * Parts that several views render: tables, pairs and links, and words for what a turn went through.
 */

import { formatTime } from "./format.js";
import { h } from "./html.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./html.js").Child} Child
 * @typedef {{ label: string, isNumber?: boolean }} Column
 * @typedef {{ key: string | number, cells: Child[] }} Row
 * @typedef {Record<string, string>} Errors the texts of errors by their keys
 */

const DOMAIN = "windowed_conversation";
/** What a cell without a value says. On a narrow screen, it is left out. */
export const NOTHING = "–";

/**
 * Return a table whose rows are cards on a narrow screen. The roles keep it a table for screen readers there.
 *
 * @param {string} caption
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
export function renderTable(caption, columns, rows) {
  const head = columns.map(({ label, isNumber }) =>
    h("th", { role: "columnheader", scope: "col", class: isNumber && "number" }, label),
  );
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "lines cards", role: "table" },
      h("caption", { class: "visually-hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
      h(
        "tbody",
        { role: "rowgroup" },
        rows.map(({ key, cells }) => h("tr", { key, role: "row" }, cells.map(renderCell(columns)))),
      ),
    ),
  );
}

/**
 * @param {Column[]} columns
 * @returns {(content: Child, place: number) => Child}
 */
function renderCell(columns) {
  return (content, place) => {
    const column = columns[place];
    const classes = [column?.isNumber && "number", content === NOTHING && "empty"].filter(Boolean).join(" ");
    return h("td", { role: "cell", class: classes || null, "data-label": column?.label, dir: "auto" }, content);
  };
}

/**
 * Return a list of terms with their values. Pairs without a value are left out.
 *
 * @param {[string, Child][]} pairs
 */
export function renderPairs(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return h(
    "dl",
    { class: "pairs" },
    shown.map(([term, value]) => [h("dt", null, term), h("dd", { dir: "auto" }, value)]),
  );
}

/**
 * Return a link to another state of the page, which opens without a reload.
 *
 * @param {Context} context
 * @param {Record<string, string | null>} patch
 * @param {Child} content
 * @param {import("./html.js").Props} [props]
 */
export function renderLink(context, patch, content, props = {}) {
  const open = (/** @type {MouseEvent} */ event) => {
    // Those open another tab or window of the browser.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    context.update(patch);
  };
  return h("a", { ...props, href: context.link(patch), onclick: open }, content);
}

/**
 * Return a field with a choice, whose change is a change of the address.
 *
 * @param {Context} context
 * @param {string} name
 * @param {string} label
 * @param {string} value
 * @param {[string, string][]} options
 */
export function renderSelect(context, name, label, value, options) {
  const change = (/** @type {Event} */ event) =>
    context.update({ [name]: /** @type {HTMLSelectElement} */ (event.target).value });
  return h(
    "label",
    { key: name },
    label,
    h(
      "select",
      { onchange: change },
      options.map(([key, text]) => h("option", { key, value: key, ".selected": key === value }, text)),
    ),
  );
}

/**
 * Render the view again, after a change that is not part of the address.
 *
 * @param {Context} context
 */
export function redraw(context) {
  context.say("");
}

/**
 * Return the texts of the errors of turns and of requests, by their keys.
 *
 * @param {Context} context
 * @param {(string | null | undefined)[]} keys
 * @returns {Promise<Errors>}
 */
export async function loadErrors(context, keys) {
  /** @type {Errors} */
  const texts = {};
  for (const key of new Set(keys)) {
    if (!key) continue;
    texts[key] = await context.describe({
      translation_domain: DOMAIN,
      translation_key: key,
      translation_placeholders: { address: "…" },
      message: translateOr(context, `errors.${key}`, key),
    });
  }
  return texts;
}

/**
 * Return the keys of all errors of a turn. The reason of a fallback agent's answer is one, too.
 *
 * @param {any} turn
 * @returns {string[]}
 */
export function findErrorKeys(turn) {
  const failures = (turn.failures ?? []).map((/** @type {any} */ failure) => failure.error);
  const attempts = (turn.attempts ?? []).map((/** @type {any} */ attempt) => attempt.error);
  return [turn.error, turn.route === "fallback" && turn.reason, ...failures, ...attempts].filter(Boolean);
}

/**
 * Return what answered a turn. Memory answers without a model as Home Assistant does, and is named.
 *
 * @param {Pick<Context, "label" | "t">} context
 * @param {any} turn
 */
export function nameRoute({ label, t }, { route, reason }) {
  return reason === "memory_request" ? t("panel.tab_memory") : label("turn_route", route);
}

/**
 * Return why a turn took its route, in words.
 *
 * @param {Context} context
 * @param {any} turn
 * @param {Errors} errors
 */
export function describeReason(context, turn, errors) {
  if (!turn.reason) return "";
  return translateOr(context, `reasons.${turn.reason}`, errors[turn.reason] ?? turn.reason);
}

/**
 * Return the name of a conversation agent, or its entity id if it has none any more.
 *
 * @param {Context} context
 * @param {string | null | undefined} entityId
 */
export function nameAgent(context, entityId) {
  if (!entityId) return "";
  const agent = context.overview.agents.find((each) => each.entity_id === entityId);
  return agent?.name ?? context.hass.states[entityId]?.attributes?.friendly_name ?? entityId;
}

/**
 * @param {Context} context
 * @param {string} iso
 */
export function renderTime(context, iso) {
  return h("time", { datetime: iso }, formatTime(context.hass, iso));
}

/**
 * Return a text of the page, or another one if the page has none.
 *
 * @param {Context} context
 * @param {string} key
 * @param {string} other
 */
export function translateOr(context, key, other) {
  const text = context.t(key);
  return text === key ? other : text;
}
