/**
 * The record of turns as a table, with filters in the address.
 */

import { chooseMoneyDigits, formatDuration, formatMoney, formatNumber } from "./format.js";
import { h } from "./html.js";
import {
  describeReason,
  findErrorKeys,
  loadErrors,
  NOTHING,
  nameAgent,
  nameRoute,
  redraw,
  renderLink,
  renderSelect,
  renderTable,
  renderTime,
} from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").State} State
 * @typedef {{ turns: any[], next: string | null, errors: import("./parts.js").Errors }} Data
 */

const PAGE_SIZE = 50;
const ROUTES = ["local", "model", "fallback", "summary", "search_words", "task"];
const OUTCOMES = ["answered", "error", "cancelled"];
/** The texts that the page has in other groups. @type {Record<string, string>} */
const FILTER_TEXTS = { agent: "panel.agent" };
const FILTERS = ["agent", "person", "route", "outcome", "tool", "since", "until"];

/**
 * Return the query for the turns that match the filters. Days begin and end in Home Assistant's time zone.
 *
 * @param {State} state
 * @param {string | null} [after]
 * @returns {Record<string, unknown>}
 */
export function buildQuery(state, after) {
  const { agent, person, route, outcome, tool, since, until } = state;
  return {
    limit: PAGE_SIZE,
    ...(agent && { entity_id: [agent] }),
    ...(person && { person }),
    ...(route && ROUTES.includes(route) && { route }),
    ...(outcome && OUTCOMES.includes(outcome) && { outcome }),
    ...(tool && { tool }),
    ...(since && { since: `${since}T00:00:00` }),
    ...(until && { until: `${until}T23:59:59.999` }),
    ...(after && { after }),
  };
}

/**
 * Return the people who can be chosen, as their entities and names.
 *
 * @param {Record<string, any>} states
 * @returns {[string, string][]}
 */
export function listPeople(states) {
  return Object.entries(states)
    .filter(([id, state]) => id.startsWith("person.") && state.attributes?.user_id)
    .map(([id, state]) => /** @type {[string, string]} */ ([id, state.attributes.friendly_name ?? id]))
    .sort(([, one], [, other]) => one.localeCompare(other));
}

/** @type {import("./types.js").View} */
export const view = { name: "turns", load, render };

/**
 * @param {Context} context
 * @param {State} state
 * @returns {Promise<Data>}
 */
async function load(context, state) {
  const { turns, next_after } = await context.call("list_turns", buildQuery(state));
  return { turns, next: next_after, errors: await loadErrors(context, turns.flatMap(findErrorKeys)) };
}

/**
 * Append the next page of turns.
 *
 * @param {Context} context
 * @param {State} state
 * @param {Data} data
 */
export async function loadMore(context, state, data) {
  try {
    const { turns, next_after } = await context.call("list_turns", buildQuery(state, data.next));
    data.errors = { ...data.errors, ...(await loadErrors(context, turns.flatMap(findErrorKeys))) };
    data.turns.push(...turns);
    data.next = next_after;
    redraw(context);
  } catch (error) {
    context.say(await context.describe(error), { isError: true });
  }
}

/**
 * @param {Context} context
 * @param {State} state
 * @param {Data} data
 */
function render(context, state, data) {
  const { t } = context;
  const more = () => loadMore(context, state, data);
  const digits = chooseMoneyDigits(data.turns.map((turn) => turn.cost));
  return h(
    "section",
    { class: "card" },
    h("h2", null, t("panel.tab_turns")),
    renderFilters(context, state),
    data.turns.length
      ? renderTable(
          t("panel.tab_turns"),
          listColumns(context),
          data.turns.map((turn) => ({ key: turn.turn_id, cells: renderCells(context, turn, data.errors, digits) })),
        )
      : h("p", null, t("turns.none")),
    data.next && h("button", { type: "button", onclick: more }, t("turns.more")),
  );
}

/**
 * @param {Context} context
 * @param {State} state
 */
function renderFilters(context, state) {
  const { t, label, overview } = context;
  const all = /** @type {[string, string]} */ (["", t("panel.all")]);
  const agents = overview.agents.map((agent) => /** @type {[string, string]} */ ([agent.entity_id, agent.name]));
  const labels = (/** @type {string} */ selector, /** @type {string[]} */ values) =>
    values.map((value) => /** @type {[string, string]} */ ([value, label(selector, value)]));
  const clear = () => context.update(Object.fromEntries(FILTERS.map((name) => [name, null])));
  const select = (/** @type {string} */ name, /** @type {[string, string][]} */ options) =>
    renderSelect(context, name, t(FILTER_TEXTS[name] ?? `turns.${name}`), state[name] ?? "", [all, ...options]);
  return h(
    "form",
    { class: "row", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    select("agent", agents),
    overview.user.is_admin && select("person", listPeople(context.hass.states)),
    select("route", labels("turn_route", ROUTES)),
    select("outcome", labels("turn_outcome", OUTCOMES)),
    renderInput(context, state, "tool", { type: "text", maxlength: 100, size: 16 }),
    renderInput(context, state, "since", { type: "date" }),
    renderInput(context, state, "until", { type: "date" }),
    FILTERS.some((name) => state[name]) && h("button", { type: "button", onclick: clear }, t("turns.clear")),
  );
}

/**
 * @param {Context} context
 * @param {State} state
 * @param {string} name
 * @param {import("./html.js").Props} props
 */
function renderInput(context, state, name, props) {
  const change = (/** @type {Event} */ event) =>
    context.update({ [name]: /** @type {HTMLInputElement} */ (event.target).value.trim() });
  return h(
    "label",
    { key: name },
    context.t(`turns.${name}`),
    h("input", { ...props, ".value": state[name] ?? "", onchange: change }),
  );
}

/** @param {Context} context */
function listColumns({ label, t }) {
  return [
    { label: t("turns.time") },
    { label: t("turns.who") },
    { label: t("turns.route") },
    { label: t("bar.tools") },
    { label: t("turns.duration"), isNumber: true },
    { label: t("turns.input"), isNumber: true },
    { label: t("turns.cached"), isNumber: true },
    { label: t("turns.output"), isNumber: true },
    { label: t("turns.cost"), isNumber: true },
    { label: label("turn_outcome", "error") },
  ];
}

/**
 * @param {Context} context
 * @param {any} turn
 * @param {import("./parts.js").Errors} errors
 * @param {number} digits the decimals of a cost
 */
function renderCells(context, turn, errors, digits) {
  const { hass, t } = context;
  const { input = 0, cached = 0, output = 0 } = turn.usage ?? {};
  const number = (/** @type {number} */ value) => (turn.requests ? formatNumber(hass, value) : NOTHING);
  const answered = nameAgent(context, turn.answered_by ?? turn.entity_id);
  return [
    [
      renderLink(context, { view: "why", turn: turn.turn_id }, renderTime(context, turn.time)),
      h("div", { class: "quiet small" }, answered),
    ],
    [turn.person ?? t("turns.unknown_speaker"), turn.device && h("div", { class: "quiet small" }, turn.device)],
    [nameRoute(context, turn), h("div", { class: "quiet small" }, describeReason(context, turn, errors))],
    turn.tools.length ? turn.tools.join(", ") : NOTHING,
    formatDuration(hass, turn.duration),
    number(input),
    number(cached),
    number(output),
    formatMoney(hass, turn.cost, undefined, digits),
    describeEnd(context, turn, errors),
  ];
}

/**
 * @param {Context} context
 * @param {any} turn
 * @param {import("./parts.js").Errors} errors
 */
function describeEnd({ label }, turn, errors) {
  if (turn.error) return errors[turn.error] ?? turn.error;
  return turn.outcome === "answered" ? NOTHING : label("turn_outcome", turn.outcome);
}
