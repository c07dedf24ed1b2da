/**
 * The view of the conversations: how full the context of one is, its exchanges, and which of them the next trim evicts.
 */

import { renderBar } from "./bar.js";
import { formatNumber, formatTime } from "./format.js";
import { h } from "./html.js";

/**
 * @typedef {import("./api.js").Context} Context
 * @typedef {import("./api.js").State} State
 * @typedef {{
 *   entity_id: string,
 *   conversation_id: string,
 *   agent: string,
 *   person: string | null,
 *   device: string | null,
 *   source: string,
 *   last_used: string,
 *   figures: import("./bar.js").Figures,
 * }} Row
 * @typedef {{
 *   exchange: number,
 *   number: number,
 *   time: string | null,
 *   said: string,
 *   answer: string,
 *   is_cut: boolean,
 *   route: string | null,
 *   tools: string[],
 *   tokens: number,
 *   messages: number,
 *   tags: string[],
 *   is_summary: boolean,
 *   is_incomplete: boolean,
 *   is_pinned: boolean,
 *   is_excluded: boolean,
 * }} Exchange
 * @typedef {Row & { weight: import("./bar.js").Weight | null, leaves_first: number[], exchanges: Exchange[] }} Conversation
 * @typedef {{ role: string, content: any, name?: string, tool_calls?: { name: string, arguments: unknown }[] }} Message
 * @typedef {{ rows: Row[], opened: Conversation | null, messages: Message[] | null, problem: string }} Data
 */

const SOURCES = ["person", "satellite", "automation"];
const IMPORTANT = "important";
const EPHEMERAL = "ephemeral";
const MAX_FILE_BYTES = 8_000_000;
// Home Assistant closes a connection that sends it a message of more than 4 MiB.
const MAX_SENT_BYTES = 4_000_000;
const REVOKE_DELAY = 10_000;

/** @type {import("./api.js").View} */
export const view = { name: "conversation", load, render, receive };

/**
 * @param {Context} context
 * @param {State} state
 * @returns {Promise<Data>}
 */
async function load(context, state) {
  const { conversations: rows } = await context.call("conversations");
  const ids = chooseConversation(rows, state);
  /** @type {Data} */
  const data = { rows, opened: null, messages: null, problem: "" };
  if (!ids) return data;
  try {
    data.opened = await context.call("conversation", ids);
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
 * Return the conversations that pass the filters of a state.
 *
 * @param {Row[]} rows
 * @param {State} state
 */
export function filterRows(rows, { agent, source }) {
  return rows.filter((row) => (!agent || row.entity_id === agent) && (!source || row.source === source));
}

/**
 * Return the ids of the conversation to open: the chosen one, or else the newest one that passes the filters.
 *
 * @param {Row[]} rows
 * @param {State} state
 * @returns {{ entity_id: string, conversation_id: string } | null}
 */
export function chooseConversation(rows, state) {
  if (state.entity && state.conversation) {
    return { entity_id: state.entity, conversation_id: state.conversation };
  }
  const newest = filterRows(rows, state)[0];
  return newest ? { entity_id: newest.entity_id, conversation_id: newest.conversation_id } : null;
}

/**
 * Return the data with the figures of an event. They are stale if a conversation is new, or if the open one has changed.
 *
 * @param {State} state
 * @param {Data} data
 * @param {{ conversations: any[] }} event
 * @returns {{ data: Data, isStale: boolean }}
 */
export function receive(state, data, event) {
  const changes = new Map(event.conversations.map((change) => [keyOf(change), change]));
  const known = new Set(data.rows.map(keyOf));
  const rows = data.rows
    .map((row) => merge(row, changes.get(keyOf(row))))
    .sort((one, other) => Date.parse(other.last_used) - Date.parse(one.last_used));
  const change = data.opened && changes.get(keyOf(data.opened));
  const opened = data.opened && merge(data.opened, change);
  const chosen = chooseConversation(rows, state);
  const isOther = chosen !== null && (!opened || keyOf(chosen) !== keyOf(opened));
  const isNew = event.conversations.some((each) => !known.has(keyOf(each)));
  return { data: { ...data, rows, opened }, isStale: isNew || isOther || Boolean(change) };
}

/**
 * @template {Row} T
 * @param {T} row
 * @param {Partial<Row> | undefined} change
 * @returns {T}
 */
function merge(row, change) {
  if (!change) return row;
  return { ...row, last_used: change.last_used ?? row.last_used, figures: { ...row.figures, ...change.figures } };
}

/** @param {{ entity_id: string, conversation_id: string }} row */
function keyOf({ entity_id, conversation_id }) {
  return `${entity_id}\n${conversation_id}`;
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
        { class: "card", open: !context.narrow, key: "list" },
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
        : h("p", { class: "card", key: "none" }, t(rows.length ? "conversation.choose" : "conversation.empty")),
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
  const open = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    update(patch);
  };
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
        t("conversation.size", {
          exchanges: formatNumber(hass, row.figures.exchanges),
          tokens: formatNumber(hass, tokens),
        }),
      ),
    ),
  );
}

/**
 * Return the name of a conversation: who speaks in it, or its id.
 *
 * @param {Pick<Row, "person" | "device" | "conversation_id">} row
 */
export function nameConversation({ person, device, conversation_id }) {
  return person ?? device ?? conversation_id;
}

/**
 * @param {Context["t"]} t
 * @param {Row} row
 */
function describeSource(t, { source, person, device }) {
  if (person && device) return device;
  return SOURCES.includes(source) ? t(`conversation.${source}`) : "";
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
      renderEvicted(context, figures),
      h("ol", { class: "items" }, renderExchanges(context, state, opened, messages)),
    ),
  ];
}

/**
 * @param {Context} context
 * @param {Conversation["figures"]} figures
 */
function renderEvicted({ t, hass }, { evicted, trims }) {
  if (!evicted?.exchanges) return null;
  const counts = {
    exchanges: formatNumber(hass, evicted.exchanges),
    tokens: formatNumber(hass, evicted.tokens),
    trims: formatNumber(hass, trims),
  };
  return h("p", { class: "quiet", key: "evicted" }, t("conversation.evicted", counts));
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
  const last = opened.exchanges.findLast(({ exchange }) => leaving.has(exchange));
  return opened.exchanges.map((exchange) => [
    renderExchange(context, state, opened, exchange, leaving.has(exchange.exchange), messages),
    exchange === last &&
      h(
        "li",
        { class: "trim-line", key: "trim", role: "separator" },
        h("span", null, context.t("conversation.trim_line")),
      ),
  ]);
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
    exchange.is_summary && h("p", { class: "quiet small" }, t("conversation.summary")),
    isShown
      ? messages.map((message) => renderMessage(context, message))
      : [
          !exchange.is_summary && h("p", { class: "said", dir: "auto", key: "said" }, exchange.said),
          h("p", { class: "text", dir: "auto", key: "answer" }, exchange.answer),
        ],
    h("p", { class: "small quiet" }, describeExchange(context, exchange)),
    renderChips(context, exchange, isLeaving),
    h(
      "div",
      { class: "row" },
      renderTagButtons(context, opened, exchange),
      (exchange.is_cut || exchange.messages > 2 || isShown) &&
        h(
          "button",
          { key: "show", type: "button", "aria-expanded": String(isShown), onclick: show },
          t(isShown ? "conversation.show_less" : "conversation.show_all"),
        ),
    ),
  );

  function describeExchange(/** @type {Context} */ { label }, /** @type {Exchange} */ { time, route, tokens }) {
    const parts = [
      time && formatTime(hass, time),
      route && label("turn_route", route),
      t("conversation.tokens", { tokens: formatNumber(hass, tokens) }),
    ];
    return parts.filter(Boolean).join(" · ");
  }
}

/**
 * @param {Context} context
 * @param {Exchange} exchange
 * @param {boolean} isLeaving
 */
function renderChips({ t }, exchange, isLeaving) {
  const flags = [
    isLeaving && "leaves",
    exchange.is_incomplete && "incomplete",
    exchange.is_pinned && "pinned",
    exchange.is_excluded && "excluded",
  ];
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
  const agent = context.overview.agents.find(({ entity_id }) => entity_id === opened.entity_id);
  const pin = exchange.is_pinned
    ? { key: "unpin", add: [], remove: [IMPORTANT] }
    : { key: "pin", add: [IMPORTANT], remove: [] };
  return [pin, chooseExclusion(exchange, agent?.excluded_tags ?? [])].map((change, index) =>
    h(
      "button",
      { key: `tag-${index}`, type: "button", onclick: () => tag(context, opened, exchange, change) },
      context.t(`conversation.${change.key}`),
    ),
  );
}

/**
 * Return the change of tags that excludes an exchange or includes it again.
 *
 * An agent without excluded tags sends all exchanges. For such an agent, the tag only makes the exchange leave first.
 *
 * @param {Pick<Exchange, "is_excluded" | "tags">} exchange
 * @param {string[]} excludedTags
 */
export function chooseExclusion({ is_excluded, tags }, excludedTags) {
  // A tag with a colon is automatic, and nobody can set it.
  const tag = excludedTags.find((each) => !each.includes(":"));
  if (is_excluded) return { key: "include", add: [], remove: excludedTags.filter((each) => tags.includes(each)) };
  if (tag) return { key: "exclude", add: [tag], remove: [] };
  return tags.includes(EPHEMERAL)
    ? { key: "evict_in_order", add: [], remove: [EPHEMERAL] }
    : { key: "evict_first", add: [EPHEMERAL], remove: [] };
}

/**
 * @param {Context} context
 * @param {Message} message
 */
function renderMessage({ t }, { role, content, name, tool_calls: calls = [] }) {
  return h(
    "div",
    { class: "message" },
    h("p", { class: "small quiet" }, t(`conversation.${role}`, { name: name ?? "" })),
    content && h("p", { class: "text long", dir: "auto" }, formatJson(content)),
    calls.map((each) => [
      h("p", { class: "small" }, t("conversation.calls", { name: each.name })),
      h("p", { class: "text long", dir: "auto" }, formatJson(each.arguments)),
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
        h("input", { type: "file", name: "file", accept: ".json,application/json" }),
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
      h("button", { type: "submit" }, t("conversation.import_start")),
    ),
  );
}

/**
 * @param {Context} context
 * @param {HTMLFormElement} form
 */
async function importFile(context, form) {
  const fields = new FormData(form);
  const file = fields.get("file");
  if (!(file instanceof File) || !file.size)
    return context.say(context.t("conversation.import_no_file"), { isError: true });
  if (file.size > MAX_FILE_BYTES) return context.say(context.t("conversation.import_large"), { isError: true });
  const { content, key, error = "" } = parseExport(await file.text());
  if (key) return context.say(context.t(`conversation.${key}`, { error }), { isError: true });
  const entity_id = String(fields.get("agent"));
  const isDone = await context.act(
    async () => {
      const { conversation_id } = await context.call("import_conversation", { entity_id, export: content });
      context.update({ entity: entity_id, conversation: conversation_id, exchange: null });
    },
    { done: "conversation.imported" },
  );
  if (isDone) form.reset();
}

/**
 * Return the content of an exported file, or the key of the text that says why it has none.
 *
 * @param {string} text
 * @returns {{ content?: object, key?: string, error?: string }}
 */
export function parseExport(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (error) {
    return { key: "import_malformed", error: /** @type {Error} */ (error).message };
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    return { key: "import_malformed", error: typeof content };
  }
  if (new Blob([JSON.stringify(content)]).size > MAX_SENT_BYTES) return { key: "import_large" };
  return { content };
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 * @param {Exchange} exchange
 * @param {{ add: string[], remove: string[] }} change
 */
function tag(context, opened, exchange, { add, remove }) {
  return context.act(
    async () => {
      // Exchanges are counted back from the newest one, and there may be a newer one than when this was drawn.
      const { exchanges } = await context.call("conversation", idsOf(opened));
      const current = exchanges.find((/** @type {Exchange} */ each) => each.number === exchange.number);
      const back = current?.exchange ?? exchange.exchange;
      await context.call("tag_exchange", { ...idsOf(opened), exchange: back, add, remove });
    },
    { done: "conversation.tagged" },
  );
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
function summarize(context, opened) {
  return context.act(() => context.call("summarize_conversation", idsOf(opened)), { done: "conversation.summarized" });
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
async function fork(context, opened) {
  const { t } = context;
  const name = await context.ask({
    title: t("conversation.fork"),
    text: t("conversation.fork_text"),
    label: t("conversation.fork_name"),
    confirm: t("conversation.fork"),
  });
  if (!name) return;
  await context.act(
    async () => {
      await context.call("fork_conversation", { ...idsOf(opened), new_conversation_id: name });
      context.update({ entity: opened.entity_id, conversation: name, exchange: null });
    },
    { done: "conversation.forked" },
  );
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
async function forget(context, opened) {
  const { t, hass } = context;
  const isConfirmed = await context.confirm({
    title: t("conversation.forget_title"),
    text: t("conversation.forget_text", { exchanges: formatNumber(hass, opened.figures.exchanges) }),
    confirm: t("conversation.forget"),
    isDangerous: true,
  });
  if (!isConfirmed) return;
  await context.act(
    async () => {
      await context.call("delete_conversation", idsOf(opened));
      context.update({ entity: null, conversation: null, exchange: null }, { replace: true });
    },
    { done: "conversation.forgotten" },
  );
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
function download(context, opened) {
  return context.act(
    async () => {
      const { export: content } = await context.call("get_conversation", { ...idsOf(opened), content: "export" });
      const url = URL.createObjectURL(new Blob([JSON.stringify(content)], { type: "application/json" }));
      const anchor = document.createElement("a");
      anchor.href = url;
      anchor.download = `${opened.conversation_id.replace(/[^\w.-]+/g, "_")}.json`;
      anchor.click();
      // The browser reads it only after this.
      setTimeout(() => URL.revokeObjectURL(url), REVOKE_DELAY);
    },
    { done: "conversation.exported" },
  );
}

/** @param {Row} row */
function idsOf({ entity_id, conversation_id }) {
  return { entity_id, conversation_id };
}
