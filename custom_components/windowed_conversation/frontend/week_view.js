/**
 * The content of the card of the week: questions, their costs and failures, and the slowest one with its reason.
 */

import { describeError } from "./api.js";
import { formatDuration, formatMoney, formatNumber, formatShare } from "./format.js";
import { h, render } from "./html.js";
import { LiveCard } from "./live_card.js";
import { formatUrl } from "./state.js";

/**
 * @typedef {import("./types.js").Hass} Hass
 * @typedef {{
 *   turn_id: string, duration: number, error: string | null, step: string | null, name: string | null, times: number,
 *   step_duration: number | null,
 * }} Slowest `step` is the work that took the longest, `times` how often it was done
 * @typedef {{
 *   questions: number, local: number, failed: number, cost: number | null, currency: string, slowest: Slowest | null,
 * }} Week
 */

const BASE = "/windowed-conversation";
const DOMAIN = "windowed_conversation";
// The figures are those of a week: they need not follow each turn at once.
const RELOAD_DELAY = 5000;

/** @extends {LiveCard<{ week?: Week, failure?: string, error?: string }>} `failure` is the error of the slowest one */
export class WeekView extends LiveCard {
  /** @param {ShadowRoot} root */
  constructor(root) {
    super(root, RELOAD_DELAY);
  }

  /**
   * @override
   * @param {(command: string) => Promise<any>} call
   */
  async read(call) {
    /** @type {Week} */
    const week = await call("week");
    const key = week.slowest?.error;
    if (!key || !this.hass) return { week };
    const failure = await describeError(this.hass, this.t, {
      translation_domain: DOMAIN,
      translation_key: key,
      translation_placeholders: { address: "…" },
      message: this.t("week.failed"),
    });
    return { week, failure };
  }

  /**
   * @override
   * @param {Hass} hass
   */
  draw(hass) {
    const { week, failure, error } = this.shown;
    render(
      this.root,
      h(
        "div",
        { class: "tile" },
        h("h2", { key: "title", dir: "auto" }, this.config.title || this.t("week.title")),
        error && h("p", { key: "error", class: "error" }, error),
        week && listFigures(hass, this.t, week, failure),
        h("p", { key: "link" }, h("a", { href: formatUrl(BASE, { view: "turns" }) }, this.t("card.open"))),
      ),
    );
  }
}

/**
 * Return the figures of a week as a list. The slowest question leads to its details.
 *
 * @param {Hass} hass
 * @param {import("./types.js").Translate} t
 * @param {Week} week
 * @param {string} [failure] the error of the slowest question
 */
export function listFigures(hass, t, { questions, local, failed, cost, currency, slowest }, failure) {
  if (!questions) return h("p", { key: "none", class: "quiet" }, t("turns.none"));
  const href = slowest && formatUrl(BASE, { view: "turns", turn: slowest.turn_id });
  /** @type {[string, import("./html.js").Child][]} */
  const pairs = [
    [t("costs.turns"), formatNumber(hass, questions)],
    [t("costs.no_model"), formatShare(hass, local / questions)],
    [t("turns.cost"), cost !== null && formatMoney(hass, cost, currency)],
    [t("week.failed"), formatNumber(hass, failed)],
    [
      t("week.slowest"),
      slowest && [
        h("a", { href }, formatDuration(hass, slowest.duration)),
        h("span", { class: "small quiet" }, ` ${[failure, describeWork(hass, t, slowest)].filter(Boolean).join(" ")}`),
      ],
    ],
  ];
  return h(
    "dl",
    { key: "figures", class: "week" },
    pairs.filter(([, value]) => value).map(([name, value]) => [h("dt", null, name), h("dd", { dir: "auto" }, value)]),
  );
}

/**
 * Return the work that took the longest, how often it was done, and its time; or an empty text if it is not known.
 *
 * @param {Hass} hass
 * @param {import("./types.js").Translate} t
 * @param {Slowest} slowest
 */
function describeWork(hass, t, { step, name, times, step_duration: seconds }) {
  if (!step) return "";
  const count = times > 1 ? ` × ${formatNumber(hass, times)}` : "";
  return `${name ?? t(`why.step_${step}`)}${count}: ${formatDuration(hass, seconds)}`;
}
