/**
 * The view of the conversations: how full the context of one is, its exchanges, and which of them the next trim evicts.
 */

import { renderBar } from "./bar.js";
import { chooseEviction, download, forget, fork, importFile, summarize, tag } from "./conversation_actions.js";
import {
  chooseConversation,
  countRemoved,
  describeEvicted,
  describeSource,
  extend,
  filterRows,
  keyOf,
  nameConversation,
  receive,
  SOURCES,
} from "./conversations.js";
import { formatNumber, formatTime } from "./format.js";
import { h } from "./html.js";
import { onFollow } from "./state.js";

/**
 * @typedef {import("./types.js").Child} Child
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").Conversation} Conversation
 * @typedef {import("./types.js").ConversationData} Data
 * @typedef {import("./types.js").Exchange} Exchange
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./types.js").Row} Row
 * @typedef {import("./types.js").State} State
 */

const IMPORTANT = "important";

/** @type {import("./types.js").View} */
export const view = { name: "conversation", load, render, receive, refresh };

/**
 * @param {Context} context
 * @param {State} state
 * @returns {Promise<Data>}
 */
async function load(context, state) {
  const { conversations: rows } = await context.call("conversations");
  const ids = chooseConversation(rows, state);
  /** @type {Data} */
  const data = { rows, opened: null, removed: 0, messages: null, problem: "" };
  if (!ids) return data;
  try {
    const opened = await context.call("conversation", ids);
    Object.assign(data, { opened, removed: countRemoved(opened) });
    if (state.exchange) {
      const answer = await context.call("exchange", { ...ids, number: Number(state.exchange) });
      data.messages = answer.messages;
    }
  } catch (error) {
    // The list still helps if a conversation or an exchange has gone meanwhile.
    data.problem = await context.describe(error);
  }
  return data;
}

/**
 * Return the data with the newest exchanges of the open conversation, which are read alone where that is enough.
 *
 * @param {Context} context
 * @param {State} state
 * @param {Data} data
 * @returns {Promise<Data>}
 */
async function refresh(context, state, data) {
  const { opened } = data;
  const before = opened?.exchanges.at(-2)?.number;
  if (!opened || before === undefined) return load(context, state);
  const { entity_id, conversation_id } = opened;
  const newest = await context.call("conversation", { entity_id, conversation_id, after: before });
  const extended = extend(opened, data.removed, newest);
  return extended ? { ...data, opened: extended } : load(context, state);
}

/**
 * @param {Context} context
 * @param {State} state
 * @param {Data} data
 */
function render(context, state, data) {
  const { t } = context;
  const rows = filterRows(data.rows, state);
  return h(
    "div",
    { class: "split", key: "conversations" },
    h(
      "div",
      { class: "stack", key: "side" },
      h(
        "details",
        { class: "card", open: !context.narrow || !data.opened, key: `list-${context.narrow && state.conversation}` },
        h("summary", null, t("conversation.list")),
        renderFilters(context, state),
        rows.length
          ? h(
              "ul",
              { class: "list" },
              rows.map((row) => renderRow(context, data, row)),
            )
          : h("p", null, t("conversation.empty")),
      ),
      renderImport(context, state),
    ),
    h(
      "div",
      { class: "stack", key: "opened" },
      data.problem && h("p", { class: "card error", key: "problem" }, data.problem),
      data.opened
        ? renderConversation(context, state, data.opened, data.messages)
        : !rows.length && h("p", { class: "card", key: "none" }, t("conversation.empty")),
    ),
  );
}

/**
 * @param {Context} context
 * @param {State} state
 */
function renderFilters(context, state) {
  const { t, overview } = context;
  const sources = SOURCES.map((name) => ({ value: name, text: t(`conversation.${name}`) }));
  const agents = overview.agents.map((agent) => ({ value: agent.entity_id, text: agent.name }));
  return h(
    "div",
    { class: "row" },
    renderSelect(context, state, "source", t("conversation.source"), sources),
    renderSelect(context, state, "agent", t("panel.agent"), agents),
  );
}

/**
 * @param {Context} context
 * @param {State} state
 * @param {string} name
 * @param {string} label
 * @param {{ value: string, text: string }[]} options
 */
function renderSelect({ t, update }, state, name, label, options) {
  const choose = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.target);
    update({ [name]: value, entity: null, conversation: null, exchange: null });
  };
  return h(
    "label",
    { key: name },
    label,
    h(
      "select",
      { name, onchange: choose },
      [{ value: "", text: t("panel.all") }, ...options].map(({ value, text }) =>
        h("option", { key: value, value, ".selected": value === (state[name] ?? "") }, text),
      ),
    ),
  );
}

/**
 * @param {Context} context
 * @param {Data} data
 * @param {Row} row
 */
function renderRow({ t, hass, link, update }, data, row) {
  const { tokens, max_tokens } = row.figures;
  const patch = { entity: row.entity_id, conversation: row.conversation_id, exchange: null };
  const open = onFollow(() => update(patch));
  const isOpen = data.opened !== null && keyOf(data.opened) === keyOf(row);
  return h(
    "li",
    { key: keyOf(row) },
    h(
      "a",
      { href: link(patch), "aria-current": isOpen && "true", onclick: open },
      h("div", { class: "said" }, h("bdi", null, nameConversation(row))),
      h("div", { class: "small quiet" }, [describeSource(t, row), row.agent].filter(Boolean).join(" · ")),
      h("div", { class: "small quiet" }, formatTime(hass, row.last_used)),
      h(
        "div",
        { class: "small quiet" },
        h("meter", { min: 0, max: max_tokens, ".value": tokens, "aria-hidden": "true" }),
        " ",
        t("conversation.size", { exchanges: formatNumber(hass, row.figures.exchanges) }),
      ),
    ),
  );
}

/**
 * @param {Context} context
 * @param {State} state
 * @param {Conversation} opened
 * @param {Message[] | null} messages
 */
function renderConversation(context, state, opened, messages) {
  const { t, hass } = context;
  const { figures, weight } = opened;
  return [
    h(
      "section",
      { class: "card", key: "context", "aria-labelledby": "conversation-title" },
      h("h2", { id: "conversation-title" }, h("bdi", null, nameConversation(opened))),
      h(
        "p",
        { class: "quiet small" },
        [describeSource(t, opened), opened.agent, formatTime(hass, opened.last_used)].filter(Boolean).join(" · "),
      ),
      h("h3", null, t("conversation.context")),
      renderBar(context, figures, weight),
      !weight && h("p", { class: "small quiet" }, t("conversation.no_model")),
      figures.over_budget && h("p", { class: "error" }, t("conversation.over_budget")),
      renderActions(context, opened),
    ),
    h(
      "section",
      { class: "card", key: "exchanges", "aria-labelledby": "exchanges-title" },
      h("h3", { id: "exchanges-title" }, t("conversation.exchanges")),
      figures.evicted.exchanges > 0 && h("p", { class: "quiet", key: "evicted" }, describeEvicted(context, figures)),
      keepExchanges(context, state, opened, messages),
    ),
  ];
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
function renderActions(context, opened) {
  const { t } = context;
  const button = (/** @type {string} */ key, /** @type {() => unknown} */ action, isDangerous = false) =>
    h("button", { key, type: "button", class: isDangerous && "danger", onclick: action }, t(`conversation.${key}`));
  return h(
    "div",
    { class: "row" },
    button("summarize", () => summarize(context, opened)),
    button("fork", () => fork(context, opened)),
    button("export", () => download(context, opened)),
    button("forget", () => forget(context, opened), true),
  );
}

/** The list of exchanges that was rendered last, and from what. @type {{ list?: Child, exchanges?: unknown, messages?: unknown }} */
let kept = {};

/**
 * Return the list of the exchanges. It stays the same until they are loaded again, because it can be long, and each turn
 * in the home renders the view.
 *
 * @param {Context} context
 * @param {State} state
 * @param {Conversation} opened
 * @param {Message[] | null} messages
 */
function keepExchanges(context, state, opened, messages) {
  const { exchanges } = opened;
  if (kept.exchanges !== exchanges || kept.messages !== messages) {
    const list = h("ol", { class: "items", key: "items" }, renderExchanges(context, state, opened, messages));
    kept = { list, exchanges, messages };
  }
  return kept.list;
}

/**
 * Return the exchanges, with the line of the next trim below the last one that it evicts.
 *
 * @param {Context} context
 * @param {State} state
 * @param {Conversation} opened
 * @param {Message[] | null} messages
 */
export function renderExchanges(context, state, opened, messages) {
  const leaving = new Set(opened.leaves_first);
  const last = opened.exchanges.findLast(({ number }) => leaving.has(number));
  return opened.exchanges.map((exchange) => [
    renderExchange(context, state, opened, exchange, leaving.has(exchange.number), messages),
    exchange === last && h("li", { key: "trim" }, renderTrimLine(context.t("conversation.trim_line"))),
  ]);
}

/** @param {string} text */
function renderTrimLine(text) {
  return h("div", { class: "trim-line", role: "separator", "aria-label": text }, text);
}

/**
 * @param {Context} context
 * @param {State} state
 * @param {Conversation} opened
 * @param {Exchange} exchange
 * @param {boolean} isLeaving
 * @param {Message[] | null} messages
 */
function renderExchange(context, state, opened, exchange, isLeaving, messages) {
  const { t, hass, update } = context;
  const { number } = exchange;
  const isShown = messages !== null && state.exchange === String(number);
  const show = () =>
    update({
      exchange: isShown ? null : String(number),
      entity: opened.entity_id,
      conversation: opened.conversation_id,
    });
  return h(
    "li",
    { key: number, class: isLeaving && "leaving" },
    exchange.is_summary && h("p", { class: "quiet small" }, context.label("turn_route", "summary")),
    isShown
      ? messages.map((message) => renderMessage(context, message))
      : [
          !exchange.is_summary &&
            h("p", { class: "said", dir: "auto", key: "said", id: `said-${number}` }, exchange.said),
          h("p", { class: "text", dir: "auto", key: "answer" }, exchange.answer),
        ],
    h(
      "p",
      { class: "small quiet" },
      [
        exchange.time && formatTime(hass, exchange.time),
        exchange.route && context.label("turn_route", exchange.route),
        t("conversation.tokens", { tokens: formatNumber(hass, exchange.tokens) }),
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    renderChips(context, exchange, isLeaving),
    h(
      "div",
      { class: "row", role: "group", "aria-labelledby": `said-${number}` },
      renderTagButtons(context, opened, exchange),
      (exchange.is_cut || exchange.messages > 2 || isShown) &&
        h(
          "button",
          { key: "show", type: "button", "aria-expanded": String(isShown), onclick: show },
          t(isShown ? "conversation.show_less" : "conversation.show_all"),
        ),
    ),
  );
}

/**
 * @param {Context} context
 * @param {Exchange} exchange
 * @param {boolean} isLeaving
 */
function renderChips({ t }, exchange, isLeaving) {
  const flags = [isLeaving && "leaves", exchange.is_incomplete && "incomplete", exchange.is_pinned && "pinned"];
  const chips = [
    ...flags.filter((flag) => flag !== false).map((flag) => t(`conversation.${flag}`)),
    ...exchange.tools,
    ...exchange.tags.filter((tag) => tag !== IMPORTANT),
  ];
  if (!chips.length) return null;
  return h(
    "ul",
    { class: "chips" },
    chips.map((chip) => h("li", { class: "chip", dir: "auto" }, chip)),
  );
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 * @param {Exchange} exchange
 */
function renderTagButtons(context, opened, exchange) {
  const pin = exchange.is_pinned
    ? { key: "unpin", add: [], remove: [IMPORTANT] }
    : { key: "pin", add: [IMPORTANT], remove: [] };
  return [pin, chooseEviction(exchange)].map((change, index) =>
    h(
      "button",
      { key: `tag-${index}`, type: "button", onclick: () => tag(context, opened, exchange, change) },
      context.t(`conversation.${change.key}`),
    ),
  );
}

/**
 * @param {Context} context
 * @param {Message} message
 */
function renderMessage({ t }, { role, content, name, tool_calls: calls = [] }) {
  return h(
    "div",
    { class: "message" },
    h(
      "p",
      { class: "small quiet" },
      role === "system" ? t("bar.instructions") : t(`conversation.${role}`, { name: name ?? "" }),
    ),
    content && h("p", { class: "text long", dir: "auto", tabindex: "0" }, formatJson(content)),
    calls.map((each) => [
      h("p", { class: "small" }, t("conversation.calls", { name: each.name })),
      h("p", { class: "text long", dir: "auto", tabindex: "0" }, formatJson(each.arguments)),
    ]),
  );
}

/** @param {unknown} value */
function formatJson(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/**
 * @param {Context} context
 * @param {State} state
 */
function renderImport(context, state) {
  const { t, overview } = context;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    importFile(context, /** @type {HTMLFormElement} */ (event.currentTarget));
  };
  return h(
    "details",
    { class: "card", key: "import" },
    h("summary", null, t("conversation.import")),
    h(
      "form",
      { class: "row", onsubmit: submit },
      h(
        "label",
        null,
        t("conversation.import_file"),
        h("input", { type: "file", name: "file", accept: ".json,application/json", required: true }),
      ),
      h(
        "label",
        null,
        t("panel.agent"),
        h(
          "select",
          { name: "agent" },
          overview.agents.map((agent) =>
            h("option", { value: agent.entity_id, ".selected": agent.entity_id === state.agent }, agent.name),
          ),
        ),
      ),
      h("button", { type: "submit" }, t("conversation.import")),
    ),
  );
}
