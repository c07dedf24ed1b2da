/**
 * The details of one turn: what it was sent, what its tools returned, where its time went, and what was billed.
 */

import { formatDuration, formatMoney, formatNumber, formatTime } from "./format.js";
import { h } from "./html.js";
import { describeReason, nameAgent, nameRoute, redraw, renderPairs, renderTable } from "./parts.js";
import { renderWaterfall } from "./waterfall.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./html.js").Child} Child
 * @typedef {{ system: string, tools: any, messages: any[], omitted_messages: number }} Sent
 * @typedef {{
 *   turn: any, errors: import("./parts.js").Errors, sent: Record<number, Sent | null>,
 * }} Details `sent` has the requests whose details were opened, by their number
 */

/** The purposes of a request that are also the route of a turn of their own. */
const OTHER_PURPOSES = ["summary", "search_words", "task"];

const DIFFERENCE = /** @type {const} */ ({ style: "percent", signDisplay: "exceptZero", maximumFractionDigits: 1 });

/**
 * Return our count of a request's tokens beside what was billed. `difference` is a share of our count.
 *
 * @param {any} attempt
 */
export function compareTokens({ planned_tokens: planned = null, usage }) {
  const input = usage?.input ?? null;
  return {
    planned,
    input,
    cached: usage?.cached ?? null,
    output: usage?.output ?? null,
    difference: planned && input !== null ? (input - planned) / planned : null,
  };
}

/**
 * Return a value as text: JSON with indentation, and text as it is.
 *
 * @param {unknown} value
 */
export function formatValue(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    const decoded = JSON.parse(value);
    return typeof decoded === "object" && decoded !== null ? JSON.stringify(decoded, null, 2) : value;
  } catch {
    return value;
  }
}

/**
 * Load the text of a request, once.
 *
 * @param {Context} context
 * @param {Details} data
 * @param {number} number
 */
export async function loadRequest(context, data, number) {
  if (number in data.sent) return;
  try {
    const turn = await context.call("get_turn", { turn_id: data.turn.turn_id, request: number });
    data.sent[number] = turn.sent ?? null;
    redraw(context);
  } catch (error) {
    context.say(await context.describe(error), { isError: true });
  }
}

/**
 * Return who answered and why, in words.
 *
 * @param {Context} context
 * @param {any} turn
 * @param {import("./parts.js").Errors} errors
 */
export function describeRoute(context, turn, errors) {
  const reason = describeReason(context, turn, errors);
  const route = nameRoute(context, turn);
  return reason ? `${route}: ${reason}` : route;
}

/**
 * @param {Context} context
 * @param {Details} data
 */
export function renderDetails(context, data) {
  const { t } = context;
  const { turn } = data;
  return h(
    "div",
    { class: "details", key: "details" },
    renderSummary(context, data),
    turn.waterfall.length > 0 &&
      renderPart(t("why.waterfall"), renderWaterfall(context, turn.waterfall, turn.duration)),
    turn.tool_calls?.length > 0 && renderPart(t("why.tools"), turn.tool_calls.map(renderToolCall(context))),
    turn.context && renderContext(context, turn.context),
    turn.attempts.length > 0 &&
      renderPart(t("why.requests"), [
        renderTokens(context, turn.attempts),
        turn.attempts.map((/** @type {any} */ attempt, /** @type {number} */ place) =>
          renderRequest(context, data, attempt, place + 1),
        ),
      ]),
  );
}

/**
 * @param {string} title
 * @param {Child} content
 */
function renderPart(title, content) {
  return h("section", { key: title }, h("h3", null, title), content);
}

/**
 * @param {Context} context
 * @param {Details} data
 */
function renderSummary(context, { turn, errors }) {
  const { hass, label, t } = context;
  return h(
    "section",
    { key: "summary" },
    turn.text === "shown"
      ? [
          h("p", { class: "said text", dir: "auto" }, turn.said),
          h("p", { class: "text message", dir: "auto" }, turn.answer),
        ]
      : h("p", null, t(turn.text === "private" ? "turns.private" : "why.text_not_kept")),
    renderPairs([
      [t("turns.time"), formatTime(hass, turn.time)],
      [t("turns.who"), nameSpeaker(context, { ...turn, person: turn.context?.speaker ?? turn.person })],
      [t("turns.device"), turn.device],
      [t("why.language"), nameLanguage(hass.language, turn.context?.language)],
      [t("turns.route"), describeRoute(context, turn, errors)],
      [t("panel.agent"), turn.route === "local" ? "" : nameAgent(context, turn.answered_by ?? turn.entity_id)],
      [t("why.failed_before"), turn.failures.length > 0 && renderFailures(context, turn.failures, errors)],
      [t("turns.outcome"), label("turn_outcome", turn.outcome)],
      [label("turn_outcome", "error"), turn.error && (errors[turn.error] ?? turn.error)],
      [t("turns.duration"), formatDuration(hass, turn.duration)],
      [t("turns.cost"), formatMoney(hass, turn.cost)],
    ]),
  );
}

/**
 * Return who spoke: a person, with the way in which they were known unless they were signed in, a device, or an automation.
 *
 * @param {Pick<Context, "t">} context
 * @param {any} turn
 */
export function nameSpeaker({ t }, { person, device, automation, known_by: source }) {
  if (!person || !source || source === "login") return person ?? automation ?? device ?? t("turns.unknown_speaker");
  const isVoice = source === "entity" || source === "prefix";
  return `${person}, ${isVoice ? t("turns.known_by_voice") : t("turns.known_by_device")}`;
}

/**
 * Return the name of a language in that of the user, or its code.
 *
 * @param {string} shownIn
 * @param {string | null | undefined} code
 */
export function nameLanguage(shownIn, code) {
  if (!code) return "";
  try {
    return new Intl.DisplayNames([shownIn], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/**
 * @param {Context} context
 * @param {{ agent: string, error: string }[]} failures
 * @param {import("./parts.js").Errors} errors
 */
function renderFailures(context, failures, errors) {
  return h(
    "ul",
    null,
    failures.map(({ agent, error }) => h("li", null, `${nameAgent(context, agent)}: ${errors[error] ?? error}`)),
  );
}

/**
 * Return the lines of what was sent, which is one text or a list of them.
 *
 * @param {string[] | string} sent
 */
export function splitLines(sent) {
  return (typeof sent === "string" ? sent.split("\n") : sent).filter((line) => line.trim());
}

/**
 * @param {Context} context
 * @param {{ facts: string[] | string, recalled: string[], states: string }} sent
 */
function renderContext({ t }, { facts, recalled, states }) {
  const list = (/** @type {string[] | string} */ sent) => {
    const lines = splitLines(sent);
    return lines.length
      ? h(
          "ul",
          { class: "lines-sent" },
          lines.map((line) => h("li", { class: "text", dir: "auto" }, line)),
        )
      : h("p", { class: "quiet" }, t("why.nothing_sent"));
  };
  return h(
    "section",
    { key: "context" },
    h("h3", null, t("why.context")),
    h("h4", null, t("bar.facts")),
    list(facts),
    h("h4", null, t("why.recalled")),
    list(recalled),
    h("h4", null, t("why.states")),
    states ? renderLongText(t("conversation.show_all"), states) : list([]),
  );
}

/**
 * @param {string} title
 * @param {string} text
 */
function renderLongText(title, text) {
  return h("details", { key: title }, h("summary", null, title), h("pre", { class: "text", dir: "auto" }, text));
}

/**
 * @param {Context} context
 * @returns {(call: any, place: number) => Child}
 */
function renderToolCall({ t }) {
  return (call, place) =>
    h(
      "details",
      { key: place },
      h("summary", null, h("bdi", null, call.name)),
      h("h4", null, t("why.arguments")),
      h("pre", { class: "text", dir: "auto" }, formatValue(call.arguments)),
      h("h4", null, t("turns.outcome")),
      h("pre", { class: "text", dir: "auto" }, formatValue(call.result ?? "–")),
    );
}

/**
 * @param {Context} context
 * @param {any[]} attempts
 */
function renderTokens({ hass, t }, attempts) {
  const number = (/** @type {number | null} */ value) => formatNumber(hass, value);
  const columns = [
    { label: t("why.request") },
    { label: t("why.planned"), isNumber: true },
    { label: t("why.billed"), isNumber: true },
    { label: t("why.difference"), isNumber: true },
    { label: t("turns.cached"), isNumber: true },
    { label: t("turns.output"), isNumber: true },
  ];
  const rows = attempts.map((attempt, place) => {
    const { planned, input, cached, output, difference } = compareTokens(attempt);
    return {
      key: place,
      cells: [
        number(place + 1),
        number(planned),
        number(input),
        formatNumber(hass, difference, DIFFERENCE),
        number(cached),
        number(output),
      ],
    };
  });
  return renderTable(t("turns.tokens"), columns, rows);
}

/**
 * @param {Context} context
 * @param {Details} data
 * @param {any} attempt
 * @param {number} number
 */
function renderRequest(context, data, attempt, number) {
  const { label, t } = context;
  const open = (/** @type {Event} */ event) => {
    if (/** @type {HTMLDetailsElement} */ (event.target).open) loadRequest(context, data, number);
  };
  const end = attempt.error ? (data.errors[attempt.error] ?? attempt.error) : label("turn_outcome", attempt.outcome);
  const title = [`${t("why.request")} ${number}`, attempt.model, namePurpose(context, attempt.purpose), end];
  const sent = data.sent[number];
  return h(
    "details",
    { key: `request-${number}`, ontoggle: open },
    h("summary", null, h("bdi", null, title.filter(Boolean).join(" · "))),
    !(number in data.sent) && h("p", { class: "quiet" }, t("panel.working")),
    sent === null && h("p", null, t("why.text_not_kept")),
    sent && renderSent(context, sent),
  );
}

/**
 * Return what a request was for, or an empty text if it was for the answer.
 *
 * @param {Context} context
 * @param {string} purpose
 */
function namePurpose({ label, t }, purpose) {
  if (purpose === "compaction") return t("why.compaction");
  return OTHER_PURPOSES.includes(purpose) ? label("turn_route", purpose) : "";
}

/**
 * @param {Context} context
 * @param {Sent} sent
 */
function renderSent({ hass, t }, { system, tools, messages, omitted_messages: omitted }) {
  return h(
    "div",
    { class: "sent" },
    renderLongText(t("bar.instructions"), system),
    renderLongText(t("bar.tools"), formatValue(tools)),
    omitted > 0 && h("p", { class: "quiet" }, t("why.omitted", { count: formatNumber(hass, omitted) })),
    messages.map((message) =>
      h(
        "div",
        { class: "message" },
        typeof message?.role === "string" && h("h4", null, message.role),
        h("pre", { class: "text", dir: "auto" }, formatValue(findContent(message))),
      ),
    ),
  );
}

/**
 * Return the text of a message if it has nothing else, and the whole message otherwise.
 *
 * @param {any} message
 */
export function findContent(message) {
  if (typeof message?.content !== "string" || typeof message.role !== "string") return message;
  const { role: _role, content, ...rest } = message;
  return Object.keys(rest).length ? message : content;
}
