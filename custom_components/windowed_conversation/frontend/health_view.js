/**
 * The health of servers, agents and memory in one place.
 */

import { describeEvicted } from "./conversations.js";
import { formatBytes, formatNumber, formatShare, formatTime } from "./format.js";
import { h } from "./html.js";
import { NOTHING, renderPairs } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {{ reachable: boolean | null, away_since: string | null, answered_at: string | null, models: number }} Server
 * @typedef {{ title: string, state: string, server: Server | null }} Account
 * @typedef {{
 *   reason: string | null, facts: number | null, turns: number | null, summaries: number | null,
 *   size: number | null, unindexed: number | null, pending_writes: number,
 * }} Memory
 * @typedef {(key: string, placeholders?: any) => string} Localize the titles of issues
 * @typedef {{ accounts: Account[], agents: any[], memory: Memory | null, localize: Localize }} Data
 */

const DOMAIN = "windowed_conversation";
const DIFFERENCE = /** @type {const} */ ({ style: "percent", signDisplay: "exceptZero", maximumFractionDigits: 0 });

/** @type {import("./types.js").View} */
export const view = { name: "health", load, render };

/**
 * @param {Context} context
 * @returns {Promise<Data>}
 */
async function load(context) {
  const texts = await context.hass.loadBackendTranslation("issues", DOMAIN);
  const localize = (/** @type {string} */ key, /** @type {Record<string, string>} */ placeholders) =>
    texts(`component.${DOMAIN}.issues.${key}.title`, placeholders);
  return { ...(await context.call("health")), localize };
}

/**
 * @param {Context} context
 * @param {import("./types.js").State} _state
 * @param {Data} data
 */
function render(context, _state, { accounts, agents, memory, localize }) {
  const { t } = context;
  return [
    h(
      "section",
      { class: "card", key: "accounts" },
      h("h2", null, t("health.accounts")),
      accounts.map((account) =>
        h(
          "div",
          { key: account.title, class: "part-of" },
          h("h3", { dir: "auto" }, account.title),
          h("p", { class: isAway(account) && "error" }, describeServer(context, account)),
          account.server?.models
            ? h("p", { class: "quiet" }, t("health.models", number(context, account.server.models)))
            : null,
        ),
      ),
    ),
    h(
      "section",
      { class: "card", key: "agents" },
      h("h2", null, t("health.agents")),
      agents.map((agent) => renderAgent(context, agent, localize)),
    ),
    h(
      "section",
      { class: "card", key: "memory" },
      h("h2", null, t("panel.tab_memory")),
      renderMemory(context, memory, localize),
    ),
  ];
}

/** @param {Account} account */
function isAway({ state, server }) {
  return state !== "loaded" || server?.reachable === false;
}

/**
 * Return whether the server of an account answers, in a sentence.
 *
 * @param {Context} context
 * @param {Account} account
 */
export function describeServer({ hass, t }, { state, server }) {
  if (state !== "loaded") return t("health.not_loaded");
  if (!server) return t("health.no_server");
  if (server.reachable === false) {
    return server.away_since ? t("health.away_since", { time: formatTime(hass, server.away_since) }) : t("health.away");
  }
  if (server.answered_at) return t("health.answered", { time: formatTime(hass, server.answered_at) });
  return t("health.not_asked");
}

/**
 * @param {Context} context
 * @param {any} agent
 * @param {Localize} localize
 */
function renderAgent(context, agent, localize) {
  const { hass, t } = context;
  const { calibration, cache, window: figures } = agent;
  const placeholders = { agent: agent.name, context: formatNumber(hass, agent.context_tokens) };
  return h(
    "div",
    { key: agent.entity_id, class: "part-of" },
    h("h3", { dir: "auto" }, agent.name),
    agent.findings.map((/** @type {string} */ key) =>
      h("p", { class: "error", key, dir: "auto" }, localize(key, placeholders) || key),
    ),
    !agent.findings.length && h("p", null, t("health.no_findings")),
    renderPairs([
      [t("bar.model"), agent.model],
      [t("health.context"), agent.model && describeContext(context, agent)],
      [t("health.calibration"), agent.model && describeCalibration(context, calibration)],
      [t("health.cache"), cache?.input_tokens > 0 && formatShare(hass, cache.cached_tokens / cache.input_tokens)],
      [
        t("health.windows"),
        [
          t("conversation.size", { exchanges: formatNumber(hass, figures.exchanges) }),
          t("conversation.tokens", { tokens: formatNumber(hass, figures.tokens) }),
          describeEvicted(context, figures),
        ]
          .filter(Boolean)
          .join(" · "),
      ],
    ]),
  );
}

/**
 * @param {Context} context
 * @param {any} agent
 */
function describeContext(context, { context_tokens: tokens, has_learned_context: isLearned }) {
  if (typeof tokens !== "number") return NOTHING;
  const size = context.t("conversation.tokens", { tokens: formatNumber(context.hass, tokens) });
  return isLearned ? `${size} · ${context.t("health.context_learned")}` : size;
}

/**
 * Return how the model's tokens differ from our count, by kind of text, or an empty text if nothing is learned yet.
 *
 * @param {Context} context
 * @param {{ is_learned: boolean, factors: Record<string, number> } | null} calibration
 */
export function describeCalibration({ hass, t }, calibration) {
  if (!calibration?.is_learned) return "";
  return Object.entries(calibration.factors)
    .map(([kind, factor]) => `${t(`health.kind_${kind}`)} ${formatNumber(hass, factor - 1, DIFFERENCE)}`)
    .join(", ");
}

/**
 * @param {Context} context
 * @param {Memory | null} memory
 * @param {Localize} localize
 */
function renderMemory(context, memory, localize) {
  const { hass, label, t } = context;
  if (!memory) return h("p", { class: "error" }, t("health.memory_unavailable"));
  const some = (/** @type {number | null} */ value) => (value ? formatNumber(hass, value) : null);
  return [
    memory.reason && h("p", { class: "error" }, localize(`memory_${memory.reason}`) || t("health.memory_unavailable")),
    renderPairs([
      [label("memory_kinds", "fact"), formatNumber(hass, memory.facts)],
      [label("memory_kinds", "turn"), formatNumber(hass, memory.turns)],
      [label("memory_kinds", "summary"), formatNumber(hass, memory.summaries)],
      [t("health.size"), formatBytes(hass, memory.size)],
      [t("health.unindexed"), some(memory.unindexed)],
      [t("health.pending"), some(memory.pending_writes)],
    ]),
  ];
}

/**
 * @param {Context} context
 * @param {number} value
 */
function number({ hass }, value) {
  return { count: formatNumber(hass, value) };
}
