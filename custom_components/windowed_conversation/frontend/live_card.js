/**
 * A card that is drawn again when its configuration or what it reads changes: its subscription, texts and loading.
 */

import { call, describeError, loadTexts, subscribe, unsubscribe } from "./api.js";
import { applyStyle } from "./style.js";

/**
 * @typedef {import("./types.js").Hass} Hass
 * @typedef {import("./types.js").FiguresEvent} FiguresEvent
 */

/** @template {{ error?: string }} Shown what the card has read, or the error */
export class LiveCard {
  root;
  /** @type {{ entity?: string, title?: string, view?: string }} */
  config = {};
  /** @type {Hass | undefined} */
  hass;
  /** @type {Shown} */
  shown = /** @type {Shown} */ ({});
  /** @type {Pick<import("./types.js").Context, "t" | "label"> | undefined} */
  #texts;
  /** @type {Promise<() => Promise<void> | void> | undefined} */
  #subscription;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #generation = 0;
  #delay;

  /**
   * @param {ShadowRoot} root
   * @param {number} delay the milliseconds from an event until the card reads again
   */
  constructor(root, delay) {
    this.root = root;
    this.#delay = delay;
    applyStyle(root, "card");
  }

  /** @param {LiveCard<Shown>["config"]} config */
  configure(config) {
    const isOther = config.entity !== this.config.entity;
    this.config = config;
    if (isOther && this.#texts) this.#load();
    else this.#draw();
  }

  /** @param {Hass} hass */
  setHass(hass) {
    this.hass = hass;
  }

  async start() {
    const hass = this.hass;
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
    this.hass?.connection.removeEventListener("ready", this.#load);
    clearTimeout(this.#timer);
    this.#generation += 1;
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await unsubscribe(subscription);
  }

  t = (/** @type {string} */ key, /** @type {Record<string, string | number>} */ placeholders = {}) =>
    this.#texts?.t(key, placeholders) ?? key;

  /** @param {Shown} shown */
  show(shown) {
    this.shown = shown;
    this.#draw();
  }

  /**
   * Show what an event says, and return whether that is all that has changed.
   *
   * @param {FiguresEvent} _event
   */
  showEvent(_event) {
    return false;
  }

  /**
   * Return what the card shows.
   *
   * @param {(command: string, fields?: Record<string, unknown>) => Promise<any>} _call
   * @returns {Promise<Shown>}
   */
  async read(_call) {
    throw new Error("a card reads something");
  }

  /**
   * Draw the card.
   *
   * @param {Hass} _hass
   */
  draw(_hass) {}

  /** @param {FiguresEvent} event */
  #receive(event) {
    if (this.showEvent(event)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#load, this.#delay);
  }

  #load = async () => {
    const hass = this.hass;
    if (!hass) return;
    const generation = ++this.#generation;
    /** @type {Shown} */
    let shown;
    try {
      shown = await this.read((command, fields) => call(hass, command, fields));
    } catch (error) {
      shown = /** @type {Shown} */ ({ error: await describeError(hass, this.t, error) });
    }
    if (generation !== this.#generation) return;
    this.show(shown);
  };

  #draw() {
    if (this.hass && this.#texts) this.draw(this.hass);
  }
}
