/**
 * The page: its tabs, the state in its address, the subscription, and the view that is shown.
 */

import { call, describeError, loadTexts, subscribe, unsubscribe } from "./api.js";
import { askInDialog } from "./dialog.js";
import { h, render } from "./html.js";
import { ADVANCED, findAgent, formatUrl, onFollow, parseState, patchState } from "./state.js";
import { applyStyle } from "./style.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").Hass} Hass
 * @typedef {import("./types.js").State} State
 * @typedef {import("./types.js").View} View
 */

const ELEMENT = "windowed-conversation-panel";
const TITLE = "Windowed Conversation";
const DEFAULT_PATH = "windowed-conversation";
// Several turns can end at once, and text is loaded again only for the conversation that is open.
const RELOAD_DELAY = 500;

class WindowedConversationPanel extends HTMLElement {
  /** @type {Hass | undefined} */
  #hass;
  #narrow = false;
  #base = `/${DEFAULT_PATH}`;
  /** @type {Pick<Context, "t" | "label"> | undefined} */
  #texts;
  /** @type {Context["overview"] | undefined} */
  #overview;
  /** @type {State} */
  #state = { view: "memory" };
  /** What is shown: a view with its data, or why there is none. @type {{ view?: View, state?: State, data?: any, error?: string }} */
  #shown = {};
  /** @type {{ text: string, isError: boolean }} */
  #status = { text: "", isError: false };
  #isBusy = false;
  // A slower answer to an earlier request must not replace a later one.
  #generation = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #reloadTimer;
  // Whether an event has made more stale than what a view refreshes.
  #needsAll = false;
  /** @type {Promise<() => Promise<void> | void> | undefined} */
  #subscription;
  #language = "";

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    applyStyle(root, "page");
    render(root, [h("div", { class: "shell", key: "shell" }), h("div", { key: "dialogs" })]);
  }

  set hass(/** @type {Hass} */ hass) {
    this.#hass = hass;
    const menu = /** @type {any} */ (this.shadowRoot?.querySelector("ha-menu-button"));
    if (menu) menu.hass = hass;
    if (this.isConnected && hass.language !== this.#language) this.#start();
  }

  set narrow(/** @type {boolean} */ narrow) {
    if (narrow === this.#narrow) return;
    this.#narrow = narrow;
    this.#render();
  }

  set route(/** @type {unknown} */ _route) {
    if (this.#overview) this.#follow();
  }

  set panel(/** @type {{ url_path?: string } | undefined} */ panel) {
    this.#base = `/${panel?.url_path ?? DEFAULT_PATH}`;
  }

  connectedCallback() {
    window.addEventListener("popstate", this.#follow);
    window.addEventListener("location-changed", this.#follow);
    if (this.#hass) this.#start();
  }

  disconnectedCallback() {
    window.removeEventListener("popstate", this.#follow);
    window.removeEventListener("location-changed", this.#follow);
    this.#hass?.connection.removeEventListener("ready", this.#reload);
    clearTimeout(this.#reloadTimer);
    this.#generation += 1;
    this.#language = "";
    this.#unsubscribe();
  }

  /** Load the texts, follow the figures, and show the view of the address. */
  async #start() {
    const hass = /** @type {Hass} */ (this.#hass);
    this.#language = hass.language;
    this.#state = parseState(this.#base, location.pathname, location.search);
    try {
      this.#texts = await loadTexts(hass);
    } catch {
      // The page is readable by its keys, and what follows says what is wrong.
      this.#texts = { t: (key) => key, label: (_selector, value) => value };
    }
    if (!this.isConnected) return;
    this.#render();
    this.#subscribe(hass);
    await this.#reload();
  }

  /** @param {Hass} hass */
  #subscribe(hass) {
    if (this.#subscription) return;
    // After a lost connection, events are missing.
    hass.connection.addEventListener("ready", this.#reload);
    this.#subscription = subscribe(hass, (event) => this.#receive(event));
    // Without events, the page shows what it has loaded.
    this.#subscription.catch(() => {});
  }

  async #unsubscribe() {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await unsubscribe(subscription);
  }

  /** @param {import("./types.js").FiguresEvent} event */
  #receive(event) {
    const { view, state, data } = this.#shown;
    if (!Array.isArray(event?.conversations)) return;
    // What is being loaded can be older than the event.
    if (this.#isBusy) this.#reloadLater({ needsAll: true });
    if (!view?.receive || !state || data === undefined) return;
    const received = view.receive(state, data, event);
    this.#shown = { ...this.#shown, data: received.data };
    this.#render();
    if (received.isStale) this.#reloadLater(received);
  }

  /** @param {{ needsAll?: boolean }} [options] */
  #reloadLater({ needsAll = false } = {}) {
    this.#needsAll ||= needsAll;
    clearTimeout(this.#reloadTimer);
    // A slow load is not started again before it is done: otherwise none would ever end. A hidden page waits.
    const isLate = () => this.#isBusy || document.hidden;
    this.#reloadTimer = setTimeout(() => (isLate() ? this.#reloadLater() : this.#refresh()), RELOAD_DELAY);
  }

  /** Load what events have made stale. A view that cannot load that alone is loaded as a whole. */
  async #refresh() {
    const { view, state, data } = this.#shown;
    if (this.#needsAll || !view?.refresh || !state) {
      await this.#load();
      return;
    }
    const generation = ++this.#generation;
    this.#isBusy = true;
    try {
      const refreshed = await view.refresh(this.#context(), state, data);
      if (generation !== this.#generation) return;
      this.#shown = { view, state, data: refreshed };
      this.#setBusy(false);
    } catch {
      // The whole view says what is wrong.
      if (generation === this.#generation) await this.#load();
    }
  }

  /** Follow the address, which the back button, a link, or Home Assistant has changed. */
  #follow = () => {
    if (!location.pathname.startsWith(this.#base) || !this.#overview) return;
    const state = parseState(this.#base, location.pathname, location.search);
    if (formatUrl(this.#base, state) === formatUrl(this.#base, this.#state)) return;
    this.#state = state;
    this.#load();
  };

  /**
   * @param {Record<string, string | null>} patch
   * @param {{ replace?: boolean }} [options]
   */
  #update(patch, { replace = false } = {}) {
    this.#state = patchState(this.#state, patch);
    const url = formatUrl(this.#base, this.#state);
    if (replace) history.replaceState(history.state, "", url);
    else if (url !== location.pathname + location.search) history.pushState(null, "", url);
    window.dispatchEvent(new CustomEvent("location-changed", { detail: { replace } }));
    this.#load();
  }

  /** Load the agents, and then the view. */
  #reload = async () => {
    const generation = ++this.#generation;
    this.#setBusy(true);
    try {
      const overview = await call(/** @type {Hass} */ (this.#hass), "overview");
      if (generation !== this.#generation) return;
      this.#overview = overview;
    } catch (error) {
      await this.#fail(generation, error);
      return;
    }
    this.#openTarget();
    await this.#load();
  };

  /** Replace an address that names an agent, which is that of *Visit* on its device page. */
  #openTarget() {
    const { target } = this.#state;
    if (!target) return;
    const agent = findAgent(target, this.#overview?.agents ?? [], this.#hass?.devices ?? {});
    this.#state = patchState(this.#state, { agent: agent ?? null });
    history.replaceState(history.state, "", formatUrl(this.#base, this.#state));
  }

  /** Load the data of the view, and show them. What is shown stays until then. */
  async #load() {
    const generation = ++this.#generation;
    this.#needsAll = false;
    this.#openTarget();
    const state = this.#state;
    const name = state.view ?? "";
    const isOther = this.#shown.view?.name !== name;
    if (isOther) this.#shown = {};
    this.#setBusy(true);
    const tab = this.shadowRoot?.querySelector("[aria-current=page]");
    if (isOther) tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
    try {
      const view = await this.#import(name);
      const data = this.#overview?.agents.length ? await view.load(this.#context(), state) : undefined;
      if (generation !== this.#generation) return;
      this.#shown = { view, state, data };
      this.#setBusy(false);
    } catch (error) {
      await this.#fail(generation, error);
    }
  }

  /**
   * @param {string} name
   * @returns {Promise<View>}
   */
  async #import(name) {
    try {
      return (await import(`./${name}_view.js`)).view;
    } catch {
      throw new Error(this.#translate("panel.view_failed"));
    }
  }

  /**
   * @param {number} generation
   * @param {unknown} error
   */
  async #fail(generation, error) {
    const text = await this.#describe(error);
    if (generation !== this.#generation) return;
    this.#shown = { error: text };
    this.#setBusy(false);
  }

  /** @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.#isBusy = isBusy;
    this.#render();
  }

  /** @returns {Context} */
  #context() {
    const hass = /** @type {Hass} */ (this.#hass);
    const texts = /** @type {Pick<Context, "t" | "label">} */ (this.#texts);
    return {
      ...texts,
      hass,
      overview: /** @type {Context["overview"]} */ (this.#overview),
      narrow: this.#narrow,
      call: (name, data) => call(/** @type {Hass} */ (this.#hass), name, data),
      update: (patch, options) => this.#update(patch, options),
      link: (patch) => formatUrl(this.#base, patchState(this.#state, patch)),
      reload: this.#reload,
      act: (action) => this.#act(action),
      say: (text, options) => this.#say(text, options?.isError),
      describe: (error) => this.#describe(error),
      confirm: async (question) => (await this.#ask(question)) !== null,
      ask: (question) => this.#ask(question),
    };
  }

  /**
   * @param {() => Promise<unknown>} action
   */
  async #act(action) {
    this.#say(this.#translate("panel.working"));
    try {
      await action();
    } catch (error) {
      this.#say(await this.#describe(error), true);
      return false;
    }
    this.#say(this.#translate("panel.done"));
    await this.#reload();
    return true;
  }

  /**
   * @param {string} text
   * @param {boolean} [isError]
   */
  #say(text, isError = false) {
    this.#status = { text, isError };
    this.#render();
  }

  /** @param {import("./types.js").Question} question */
  #ask(question) {
    const parent = /** @type {Element} */ (this.shadowRoot?.lastElementChild);
    return askInDialog(parent, { ...question, cancel: this.#translate("panel.cancel") });
  }

  /** @param {unknown} error */
  #describe(error) {
    return describeError(/** @type {Hass} */ (this.#hass), this.#translate, error);
  }

  #translate = (/** @type {string} */ key, /** @type {Record<string, string | number>} */ placeholders = {}) =>
    this.#texts?.t(key, placeholders) ?? key;

  #render() {
    const shell = this.shadowRoot?.firstElementChild;
    if (!shell || !this.#texts) return;
    render(shell, [
      h("header", { key: "header" }, this.#renderMenu(), h("h1", { key: "title" }, TITLE)),
      this.#renderTabs(),
      h(
        "p",
        {
          class: `status${this.#status.isError ? " error" : ""}`,
          key: "status",
          role: "status",
          "aria-live": "polite",
        },
        this.#status.text,
      ),
      h(
        "main",
        { key: `main-${this.#state.view}`, "aria-busy": String(this.#isBusy), tabindex: "-1" },
        this.#renderContent(),
      ),
    ]);
  }

  #renderMenu() {
    if (customElements.get("ha-menu-button")) {
      return h("ha-menu-button", { key: "menu", ".hass": this.#hass, ".narrow": this.#narrow });
    }
    if (!this.#narrow && this.#hass?.dockedSidebar !== "always_hidden") return null;
    const toggle = () => this.dispatchEvent(new CustomEvent("hass-toggle-menu", { bubbles: true, composed: true }));
    const label = this.#translate("panel.menu");
    return h("button", { key: "menu", class: "menu", type: "button", "aria-label": label, onclick: toggle }, "\u2630");
  }

  /** Everybody has the first two tabs. What costs and how it works is for administrators. */
  #renderTabs() {
    const { view = "" } = this.#state;
    const isAdvanced = ADVANCED.includes(view);
    const others = this.#overview?.user.is_admin ? ["costs", "advanced"] : [];
    return [
      h(
        "nav",
        { class: "tabs", key: "tabs", "aria-label": TITLE },
        ["memory", "turns", ...others].map((name) =>
          name === "advanced"
            ? this.#renderTab(name, ADVANCED[0] ?? "", isAdvanced)
            : this.#renderTab(name, name, name === view),
        ),
      ),
      isAdvanced &&
        h(
          "nav",
          { class: "tabs sub", key: "advanced", "aria-label": this.#translate("panel.tab_advanced") },
          ADVANCED.map((name) => this.#renderTab(name, name, name === view)),
        ),
    ];
  }

  /**
   * @param {string} title
   * @param {string} name that of the view
   * @param {boolean} isCurrent
   */
  #renderTab(title, name, isCurrent) {
    const open = onFollow(() => {
      // What was said about another view does not belong to this one.
      this.#status = { text: "", isError: false };
      this.#update({ view: name });
    });
    return h(
      "a",
      {
        key: title,
        href: formatUrl(this.#base, patchState(this.#state, { view: name })),
        "aria-current": isCurrent && "page",
        onclick: open,
      },
      this.#translate(`panel.tab_${title}`),
    );
  }

  #renderContent() {
    const { view, state, data, error } = this.#shown;
    if (error) return this.#renderError(error);
    if (!this.#overview) return this.#renderText("panel.working");
    const closed = this.#overview.closed_accounts.map((title) =>
      h("p", { class: "card error", key: `closed-${title}` }, this.#translate("panel.closed_account", { title })),
    );
    if (!this.#overview.agents.length) return [closed, this.#renderText("panel.no_agents")];
    if (!view || !state) return [closed, this.#renderText("panel.working")];
    return [closed, view.render(this.#context(), state, data)];
  }

  /** @param {string} key */
  #renderText(key) {
    return h("p", { class: "card", key }, this.#translate(key));
  }

  /** @param {string} error */
  #renderError(error) {
    return h(
      "div",
      { class: "card error", role: "alert", key: "error" },
      h("p", { dir: "auto" }, error),
      h("button", { type: "button", onclick: this.#reload }, this.#translate("panel.retry")),
    );
  }
}

if (!customElements.get(ELEMENT)) customElements.define(ELEMENT, WindowedConversationPanel);
