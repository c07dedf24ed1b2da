/**
 * The content of the card: the newest conversation of an agent that the user may see.
 */

import { call, describeError, loadTexts, subscribe, unsubscribe } from "./api.js";
import { renderBar } from "./bar.js";
import { describeEvicted, filterRows, isOnlyAbout, keyOf, mergeChange, nameConversation } from "./conversations.js";
import { formatNumber, formatTime } from "./format.js";
import { h, render } from "./html.js";
import { formatUrl } from "./state.js";
import { applyStyle } from "./style.js";

/**
 * @typedef {import("./types.js").Hass} Hass
 * @typedef {import("./types.js").Row} Row
 * @typedef {{ entity?: string, title?: string, view?: string }} Config
 */

const BASE = "/windowed-conversation";
const RELOAD_DELAY = 500;

export class CardView {
  #root;
  /** @type {Config} */
  #config = {};
  /** @type {Hass | undefined} */
  #hass;
  /** @type {Pick<import("./types.js").Context, "t" | "label"> | undefined} */
  #texts;
  /** @type {{ row?: Row, weight?: any, error?: string }} */
  #shown = {};
  /** @type {Promise<() => Promise<void> | void> | undefined} */
  #subscription;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #generation = 0;

  /** @param {ShadowRoot} root */
  constructor(root) {
    this.#root = root;
    applyStyle(root, "card");
  }

  /** @param {Config} config */
  configure(config) {
    const isOther = config.entity !== this.#config.entity;
    this.#config = config;
    if (isOther && this.#texts) this.#load();
    else this.#render();
  }

  /** @param {Hass} hass */
  setHass(hass) {
    this.#hass = hass;
  }

  async start() {
    const hass = this.#hass;
    if (!hass || this.#subscription) return;
    hass.connection.addEventListener("ready", this.#load);
    this.#subscription = subscribe(hass, (event) => this.#receive(event));
    // Without events, the card shows what it has loaded.
    this.#subscription.catch(() => {});
    try {
      this.#texts = await loadTexts(hass);
    } catch {
      this.#texts = { t: (key) => key, label: (_selector, value) => value };
    }
    await this.#load();
  }

  async stop() {
    this.#hass?.connection.removeEventListener("ready", this.#load);
    clearTimeout(this.#timer);
    this.#generation += 1;
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await unsubscribe(subscription);
  }

  /** @param {import("./types.js").FiguresEvent} event */
  #receive(event) {
    const { row } = this.#shown;
    const change = row && event.conversations.find((each) => keyOf(each) === keyOf(row));
    if (row && change) {
      this.#shown = { ...this.#shown, row: mergeChange(row, change) };
      this.#render();
    }
    if (isOnlyAbout(row, event, this.#config.entity)) return;
    // Another conversation may be the newest one now.
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#load, RELOAD_DELAY);
  }

  #load = async () => {
    const hass = this.#hass;
    if (!hass) return;
    const generation = ++this.#generation;
    const shown = await this.#read(hass);
    if (generation !== this.#generation) return;
    this.#shown = shown;
    this.#render();
  };

  /** @param {Hass} hass */
  async #read(hass) {
    try {
      const { conversations } = await call(hass, "conversations");
      const row = filterRows(conversations, this.#config.entity ? { agent: this.#config.entity } : {})[0];
      if (!row) return {};
      const { entity_id, conversation_id } = row;
      // The statistics have the weight of the requests, and no text.
      const { statistics } = await call(hass, "get_conversation", {
        entity_id,
        conversation_id,
        content: "statistics",
      });
      return { row, weight: statistics.request };
    } catch (error) {
      return { error: await describeError(hass, this.#t, error) };
    }
  }

  #t = (/** @type {string} */ key, /** @type {Record<string, string | number>} */ placeholders = {}) =>
    this.#texts?.t(key, placeholders) ?? key;

  #render() {
    if (!this.#hass || !this.#texts) return;
    const { row, error } = this.#shown;
    const href = formatUrl(BASE, {
      view: this.#config.view ?? "conversation",
      ...(row && { entity: row.entity_id, conversation: row.conversation_id }),
    });
    render(
      this.#root,
      h(
        "div",
        { class: "tile" },
        h(
          "h2",
          { key: "title", dir: "auto" },
          this.#config.title || (row ? nameConversation(row) : "Windowed Conversation"),
        ),
        error && h("p", { key: "error", class: "error" }, error),
        !row && !error && h("p", { key: "empty", class: "quiet" }, this.#t("conversation.empty")),
        row && this.#renderRow(row),
        h("p", { key: "link" }, h("a", { href }, this.#t("card.open"))),
      ),
    );
  }

  /** @param {Row} row */
  #renderRow(row) {
    const hass = /** @type {Hass} */ (this.#hass);
    const { figures } = row;
    const facts = [
      `${row.agent} · ${formatTime(hass, row.last_used)}`,
      `${this.#t("bar.question")} · ${this.#t("conversation.tokens", { tokens: formatNumber(hass, figures.newest_tokens) })}`,
      describeEvicted({ hass, t: this.#t }, figures),
    ];
    return [
      renderBar({ hass, t: this.#t }, figures, this.#shown.weight, { hasLegend: false }),
      facts
        .filter(Boolean)
        .map((fact, index) => h("p", { key: `fact-${index}`, class: "small quiet", dir: "auto" }, fact)),
    ];
  }
}
