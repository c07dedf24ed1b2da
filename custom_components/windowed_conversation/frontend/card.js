/**
 * Announces the card to dashboards. Every page of Home Assistant loads this module, so the card itself is only imported
 * when it is used.
 */

const TYPE = "windowed-conversation-card";
const DOMAIN = "windowed_conversation";

class WindowedConversationCard extends HTMLElement {
  static getConfigForm() {
    const agent = { entity: { filter: { domain: "conversation", integration: DOMAIN } } };
    return {
      schema: [
        { name: "entity", selector: agent },
        { name: "title", selector: { text: {} } },
      ],
    };
  }

  /** @param {{ entities?: Record<string, { platform?: string }> }} hass */
  static getStubConfig(hass) {
    const isAgent = (/** @type {string} */ id) =>
      id.startsWith("conversation.") && hass.entities?.[id]?.platform === DOMAIN;
    const entity = Object.keys(hass.entities ?? {}).find(isAgent);
    return entity ? { entity } : {};
  }

  /** @type {any} */ #config = {};
  /** @type {any} */ #hass;
  /** @type {import("./card_view.js").CardView | undefined} */ #view;

  /** @param {any} config */
  setConfig(config) {
    for (const name of ["entity", "title", "view"]) {
      if (config?.[name] && typeof config[name] !== "string") throw new Error(`${name} must be a text`);
    }
    this.#config = config ?? {};
    this.#view?.configure(this.#config);
  }

  set hass(/** @type {any} */ hass) {
    const isFirst = !this.#hass;
    this.#hass = hass;
    this.#view?.setHass(hass);
    if (isFirst && this.isConnected) this.#start();
  }

  connectedCallback() {
    if (this.#hass) this.#start();
  }

  disconnectedCallback() {
    this.#view?.stop();
  }

  getCardSize() {
    return 3;
  }

  getGridOptions() {
    return { columns: 12, min_columns: 6, rows: "auto" };
  }

  async #start() {
    const { CardView } = await import("./card_view.js");
    if (!this.isConnected) return;
    this.#view ??= new CardView(this.shadowRoot ?? this.attachShadow({ mode: "open" }));
    this.#view.configure(this.#config);
    this.#view.setHass(this.#hass);
    this.#view.start();
  }
}

// The frontend replaces the registry of elements while it starts, and does not know what was defined before.
customElements.whenDefined("home-assistant").then(() => {
  if (!customElements.get(TYPE)) customElements.define(TYPE, WindowedConversationCard);
});

const { customCards = [] } = /** @type {any} */ (window);
/** @type {any} */ (window).customCards = customCards;
if (!customCards.some((/** @type {{ type: string }} */ { type }) => type === TYPE)) {
  customCards.push({
    type: TYPE,
    name: "Windowed Conversation",
    description: "How full the context of an agent's newest conversation is",
    preview: true,
    documentationURL: "https://github.com/windowed-conversation/windowed-conversation",
  });
}
