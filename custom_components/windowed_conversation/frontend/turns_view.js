/**
 * The turns as one list: what was said, who answered and why. One of them is open, with its details.
 */

import { chooseMoneyDigits, formatDuration, formatMoney } from "./format.js";
import { h } from "./html.js";
import { findErrorKeys, loadErrors, nameAgent, redraw, renderLink, renderSelect, renderTime } from "./parts.js";
import { describeRoute, nameSpeaker, renderDetails } from "./turn_details.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").State} State
 * @typedef {import("./turn_details.js").Details} Details
 * @typedef {{
 *   turns: any[], next: string | null, errors: import("./parts.js").Errors, opened: Details | null, problem: string,
 * }} Data `opened` is the turn whose details are shown
 */

const PAGE_SIZE = 50;
const OUTCOMES = ["answered", "error", "cancelled"];
const FILTERS = ["agent", "outcome", "day", "background"];

/** The requests of the last turn that were opened: they stay when the view is loaded again. */
const kept = { turn: "", /** @type {Details["sent"]} */ sent: {} };

/**
 * Return the query for the turns that match the filters. A day begins and ends in Home Assistant's time zone.
 *
 * @param {State} state
 * @param {string | null} [after]
 * @returns {Record<string, unknown>}
 */
export function buildQuery({ agent, outcome, day, background }, after) {
  return {
    limit: PAGE_SIZE,
    ...(agent && { entity_id: [agent] }),
    ...(outcome && OUTCOMES.includes(outcome) && { outcome }),
    ...(day && { since: `${day}T00:00:00`, until: `${day}T23:59:59.999` }),
    ...(background && { background: true }),
    ...(after && { after }),
  };
}

/** @type {import("./types.js").View} */
export const view = { name: "turns", load, render, receive };

/**
 * @param {Context} context
 * @param {State} state
 * @returns {Promise<Data>}
 */
async function load(context, state) {
  const { turns, next_after } = await context.call("turns", buildQuery(state));
  /** @type {Data} */
  const data = { turns, next: next_after, errors: {}, opened: null, problem: "" };
  if (state.turn) {
    try {
      data.opened = await loadOpened(context, data, state.turn);
    } catch (error) {
      data.problem = await context.describe(error);
    }
  }
  data.errors = await loadErrors(context, [...data.turns, data.opened?.turn ?? {}].flatMap(findErrorKeys));
  if (data.opened) data.opened.errors = data.errors;
  return data;
}

/**
 * Return the details of a turn. One that is not on the page of the list becomes its first.
 *
 * @param {Context} context
 * @param {Data} data
 * @param {string} id
 * @returns {Promise<Details>}
 */
async function loadOpened(context, data, id) {
  const turn = await context.call("get_turn", { turn_id: id });
  if (!data.turns.some((each) => each.turn_id === id)) {
    const { turns } = await context.call("turns", { turn_id: id, background: true });
    data.turns = [...turns, ...data.turns];
  }
  const row = data.turns.find((each) => each.turn_id === id);
  const words = turn.text === "shown" ? {} : { text: row?.text, said: row?.said, answer: row?.answer };
  if (kept.turn !== id) Object.assign(kept, { turn: id, sent: {} });
  return { turn: { ...turn, ...words }, errors: {}, sent: kept.sent };
}

/**
 * A turn that has ended is at the top of the list, unless somebody reads further down.
 *
 * @param {State} _state
 * @param {Data} data
 */
function receive(_state, data) {
  return { data, isStale: data.turns.length <= PAGE_SIZE, needsAll: true };
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
    const { turns, next_after } = await context.call("turns", buildQuery(state, data.next));
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
  const digits = chooseMoneyDigits(data.turns.map((turn) => turn.cost));
  return h(
    "section",
    { class: "card" },
    h("h2", null, t("panel.tab_turns")),
    renderFilters(context, state),
    data.problem && h("p", { class: "error", role: "alert", dir: "auto" }, data.problem),
    data.turns.length
      ? h(
          "ul",
          { class: "turns" },
          data.turns.map((turn) => renderTurn(context, data, turn, digits)),
        )
      : h("p", null, t("turns.none")),
    data.next && h("button", { type: "button", onclick: () => loadMore(context, state, data) }, t("turns.more")),
  );
}

/**
 * @param {Context} context
 * @param {Data} data
 * @param {any} turn
 * @param {number} digits the decimals of a cost
 */
function renderTurn(context, { opened, errors }, turn, digits) {
  const { hass, overview, t } = context;
  const isOpen = opened?.turn.turn_id === turn.turn_id;
  const isOnly = turn.route === "local" || overview.agents.length < 2;
  const agent = isOnly ? "" : nameAgent(context, turn.answered_by ?? turn.entity_id);
  const problem = turn.error && (errors[turn.error] ?? turn.error);
  const row = [
    h(
      "span",
      { class: "when small quiet" },
      renderTime(context, turn.time),
      h("bdi", null, nameSpeaker(context, turn)),
    ),
    h(
      "span",
      { class: "words" },
      turn.said
        ? h("span", { class: "said", dir: "auto" }, turn.said)
        : h("span", { class: "quiet" }, t(turn.text === "private" ? "turns.private" : "turns.not_kept")),
      h(
        "span",
        { class: problem ? "error small" : "quiet small", dir: "auto" },
        problem || (turn.said ? turn.answer : turn.tools.join(", ")),
      ),
    ),
    h("span", { class: "by small quiet" }, [agent, describeRoute(context, turn, errors)].filter(Boolean).join(" · ")),
    h(
      "span",
      { class: "figures small" },
      h("span", null, formatDuration(hass, turn.duration)),
      turn.cost > 0 && h("span", null, formatMoney(hass, turn.cost, undefined, digits)),
    ),
  ];
  return h(
    "li",
    { key: turn.turn_id },
    renderLink(context, { turn: isOpen ? null : turn.turn_id }, row, {
      class: "turn",
      "aria-expanded": String(isOpen),
    }),
    isOpen && renderDetails(context, /** @type {Details} */ (opened)),
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
  const outcomes = OUTCOMES.map((name) => /** @type {[string, string]} */ ([name, label("turn_outcome", name)]));
  const update = (/** @type {Record<string, string | null>} */ patch) => context.update({ ...patch, turn: null });
  const value = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target);
  return h(
    "form",
    { class: "row", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    h(
      "label",
      { key: "day" },
      t("turns.day"),
      h("input", {
        type: "date",
        ".value": state.day ?? "",
        onchange: (/** @type {Event} */ event) => update({ day: value(event).value }),
      }),
    ),
    agents.length > 1 && renderSelect(context, "agent", t("panel.agent"), state.agent ?? "", [all, ...agents]),
    renderSelect(context, "outcome", t("turns.outcome"), state.outcome ?? "", [all, ...outcomes]),
    h(
      "label",
      { key: "background", class: "inline" },
      h("input", {
        type: "checkbox",
        ".checked": Boolean(state.background),
        onchange: (/** @type {Event} */ event) => update({ background: value(event).checked ? "1" : null }),
      }),
      t("turns.background"),
    ),
    FILTERS.some((name) => state[name]) &&
      h(
        "button",
        { type: "button", onclick: () => update(Object.fromEntries(FILTERS.map((name) => [name, null]))) },
        t("turns.clear"),
      ),
  );
}
