/**
 * The content of the card: the newest conversation of an agent that the user may see.
 */

import { renderBar } from "./bar.js";
import { describeEvicted, filterRows, isOnlyAbout, keyOf, mergeChange, nameConversation } from "./conversations.js";
import { formatNumber, formatTime } from "./format.js";
import { h, render } from "./html.js";
import { LiveCard } from "./live_card.js";
import { formatUrl } from "./state.js";

/**
 * @typedef {import("./types.js").Hass} Hass
 * @typedef {import("./types.js").Row} Row
 */

const BASE = "/windowed-conversation";
const RELOAD_DELAY = 500;

/** @extends {LiveCard<{ row?: Row, weight?: any, error?: string }>} */
export class CardView extends LiveCard {
  /** @param {ShadowRoot} root */
  constructor(root) {
    super(root, RELOAD_DELAY);
  }

  /**
   * @override
   * @param {import("./types.js").FiguresEvent} event
   */
  showEvent(event) {
    const { row } = this.shown;
    const change = row && event.conversations.find((each) => keyOf(each) === keyOf(row));
    if (row && change) this.show({ ...this.shown, row: mergeChange(row, change) });
    // Another conversation may be the newest one now.
    return isOnlyAbout(row, event, this.config.entity);
  }

  /**
   * @override
   * @param {(command: string, fields?: Record<string, unknown>) => Promise<any>} call
   */
  async read(call) {
    const { conversations } = await call("conversations");
    const row = filterRows(conversations, this.config.entity ? { agent: this.config.entity } : {})[0];
    if (!row) return {};
    const { entity_id, conversation_id } = row;
    // The statistics have the weight of the requests, and no text.
    const { statistics } = await call("get_conversation", { entity_id, conversation_id, content: "statistics" });
    return { row, weight: statistics.request };
  }

  /**
   * @override
   * @param {Hass} hass
   */
  draw(hass) {
    const { row, error } = this.shown;
    const href = formatUrl(BASE, {
      view: this.config.view ?? "conversation",
      ...(row && { entity: row.entity_id, conversation: row.conversation_id }),
    });
    render(
      this.root,
      h(
        "div",
        { class: "tile" },
        h(
          "h2",
          { key: "title", dir: "auto" },
          this.config.title || (row ? nameConversation(row) : "Windowed Conversation"),
        ),
        error && h("p", { key: "error", class: "error" }, error),
        !row && !error && h("p", { key: "empty", class: "quiet" }, this.t("conversation.empty")),
        row && this.#renderRow(hass, row),
        h("p", { key: "link" }, h("a", { href }, this.t("card.open"))),
      ),
    );
  }

  /**
   * @param {Hass} hass
   * @param {Row} row
   */
  #renderRow(hass, row) {
    const { figures } = row;
    const facts = [
      `${row.agent} · ${formatTime(hass, row.last_used)}`,
      `${this.t("bar.question")} · ${this.t("conversation.tokens", { tokens: formatNumber(hass, figures.newest_tokens) })}`,
      describeEvicted({ hass, t: this.t }, figures),
    ];
    return [
      renderBar({ hass, t: this.t }, figures, this.shown.weight, { hasLegend: false }),
      facts
        .filter(Boolean)
        .map((fact, index) => h("p", { key: `fact-${index}`, class: "small quiet", dir: "auto" }, fact)),
    ];
  }
}
