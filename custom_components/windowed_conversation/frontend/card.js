/**
 * Announces the cards to dashboards. Every page of Home Assistant loads this module, so a card itself is only imported
 * when it is used.
 */

const DOMAIN = "windowed_conversation";
const TITLE = { name: "title", selector: { text: {} } };

/**
 * @typedef {{ configure: (config: any) => void, setHass: (hass: any) => void, start: () => void, stop: () => void }} View
 * @typedef {{ type: string, name: string, description: string, schema: any[], load: (root: ShadowRoot) => Promise<View> }} Card
 */

/** @type {Card[]} */
const CARDS = [
  {
    type: "windowed-conversation-card",
    name: "Windowed Conversation",
    description: "How full the context of an agent's newest conversation is",
    schema: [
      { name: "entity", selector: { entity: { filter: { domain: "conversation", integration: DOMAIN } } } },
      TITLE,
    ],
    load: async (root) => new (await import("./card_view.js")).CardView(root),
  },
  {
    type: "windowed-conversation-week-card",
    name: "Windowed Conversation: This week",
    description: "The questions of the last seven days, their costs, and the slowest one",
    schema: [TITLE],
    load: async (root) => new (await import("./week_view.js")).WeekView(root),
  },
];

/**
 * @param {Card} card
 */
function buildElement({ schema, load }) {
  return class extends HTMLElement {
    static getConfigForm() {
      return { schema };
    }

    /** @param {{ entities?: Record<string, { platform?: string }> }} hass */
    static getStubConfig(hass) {
      const isAgent = (/** @type {string} */ id) =>
        id.startsWith("conversation.") && hass.entities?.[id]?.platform === DOMAIN;
      const entity = Object.keys(hass.entities ?? {}).find(isAgent);
      return entity && schema.some(({ name }) => name === "entity") ? { entity } : {};
    }

    /** @type {any} */ _config = {};
    /** @type {any} */ _hass;
    /** @type {View | undefined} */ _view;

    /** @param {any} config */
    setConfig(config) {
      for (const name of ["entity", "title", "view"]) {
        if (config?.[name] && typeof config[name] !== "string") throw new Error(`${name} must be a text`);
      }
      this._config = config ?? {};
      this._view?.configure(this._config);
    }

    set hass(/** @type {any} */ hass) {
      const isFirst = !this._hass;
      this._hass = hass;
      this._view?.setHass(hass);
      if (isFirst && this.isConnected) this._start();
    }

    connectedCallback() {
      if (this._hass) this._start();
    }

    disconnectedCallback() {
      this._view?.stop();
    }

    getCardSize() {
      return 3;
    }

    getGridOptions() {
      return { columns: 12, min_columns: 6, rows: "auto" };
    }

    async _start() {
      const view = this._view ?? (await load(this.shadowRoot ?? this.attachShadow({ mode: "open" })));
      this._view ??= view;
      if (!this.isConnected) return;
      this._view.configure(this._config);
      this._view.setHass(this._hass);
      this._view.start();
    }
  };
}

const { customCards = [] } = /** @type {any} */ (window);
/** @type {any} */ (window).customCards = customCards;
for (const card of CARDS) {
  const { type, name, description } = card;
  // The frontend replaces the registry of elements while it starts, and does not know what was defined before.
  customElements.whenDefined("home-assistant").then(() => {
    if (!customElements.get(type)) customElements.define(type, buildElement(card));
  });
  if (customCards.some((/** @type {{ type: string }} */ each) => each.type === type)) continue;
  const documentationURL = "https://github.com/windowed-conversation/windowed-conversation";
  customCards.push({ type, name, description, preview: true, documentationURL });
}
