/**
 * The health of servers, agents and memory in one place.
 */

import { formatBytes, formatNumber, formatShare, formatTime } from "./format.js";
import { h } from "./html.js";
import { renderPairs, translateOr } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {{ reachable: boolean | null, away_since: string | null, answered_at: string | null, models: number }} Server
 * @typedef {{ title: string, provider: string, state: string, server: Server | null }} Account
 * @typedef {{
 *   available: boolean, reason: string | null, facts: number, turns: number, summaries: number, bytes: number,
 *   unindexed: number, pending_writes: number,
 * }} Memory
 * @typedef {{ accounts: Account[], agents: any[], memory: Memory }} Data
 */

/** @type {import("./types.js").View} */
export const view = { name: "health", load: (context) => context.call("health"), render };

/**
 * @param {Context} context
 * @param {import("./types.js").State} _state
 * @param {Data} data
 */
function render(context, _state, { accounts, agents, memory }) {
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
      agents.map((agent) => renderAgent(context, agent)),
    ),
    h("section", { class: "card", key: "memory" }, h("h2", null, t("health.memory")), renderMemory(context, memory)),
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
 */
function renderAgent(context, agent) {
  const { hass, t } = context;
  const { calibration, cache, window: figures } = agent;
  const count = (/** @type {number | null | undefined} */ value) =>
    value === null || value === undefined ? null : t("conversation.tokens", { tokens: formatNumber(hass, value) });
  return h(
    "div",
    { key: agent.entity_id, class: "part-of" },
    h("h3", { dir: "auto" }, agent.name),
    (agent.findings ?? []).map((/** @type {string} */ key) =>
      h("p", { class: "error", key }, translateOr(context, `health.finding_${key}`, key)),
    ),
    !agent.findings?.length && h("p", null, t("health.no_findings")),
    renderPairs([
      [t("bar.model"), agent.model],
      [t("health.context"), describeContext(context, agent)],
      [t("health.calibration"), describeCalibration(context, calibration?.factor)],
      [t("health.cache"), typeof cache?.share === "number" && formatShare(hass, cache.share)],
      [t("bar.window"), count(figures?.max_tokens)],
      [t("health.window_used"), count(figures?.tokens)],
      [t("health.trims"), figures?.trims === undefined ? null : formatNumber(hass, figures.trims)],
    ]),
  );
}

/**
 * @param {Context} context
 * @param {any} agent
 */
function describeContext(context, { context_tokens: tokens, context_source: source }) {
  if (typeof tokens !== "number") return context.t("health.context_unknown");
  const size = context.t("conversation.tokens", { tokens: formatNumber(context.hass, tokens) });
  return source ? `${size} · ${translateOr(context, `health.context_${source}`, source)}` : size;
}

/**
 * Return how the billed tokens differ from our count, in words.
 *
 * @param {Context} context
 * @param {number | null | undefined} factor
 */
export function describeCalibration({ hass, t }, factor) {
  if (typeof factor !== "number") return t("health.not_calibrated");
  const share = formatShare(hass, Math.abs(factor - 1));
  if (Math.abs(factor - 1) < 0.005) return t("health.counts_exactly");
  return t(factor > 1 ? "health.bills_more" : "health.bills_less", { share });
}

/**
 * @param {Context} context
 * @param {Memory} memory
 */
function renderMemory(context, memory) {
  const { hass, t } = context;
  const count = (/** @type {number | undefined} */ value) => value && formatNumber(hass, value);
  return [
    h(
      "p",
      { class: !memory.available && "error" },
      memory.available
        ? t("health.memory_available")
        : translateOr(context, `health.memory_${memory.reason}`, t("health.memory_unavailable")),
    ),
    renderPairs([
      [t("health.facts"), formatNumber(hass, memory.facts)],
      [t("health.turns"), formatNumber(hass, memory.turns)],
      [t("health.summaries"), formatNumber(hass, memory.summaries)],
      [t("health.size"), formatBytes(hass, memory.bytes)],
      [t("health.unindexed"), count(memory.unindexed)],
      [t("health.pending"), count(memory.pending_writes)],
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
