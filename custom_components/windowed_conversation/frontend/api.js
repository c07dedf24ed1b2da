/**
 * Calls the integration's websocket commands.
 */

const DOMAIN = "windowed_conversation";
const ERR_CONNECTION_LOST = 3;

/**
 * @typedef {import("./types.js").Child} Child
 * @typedef {import("./types.js").Hass} Hass
 * @typedef {import("./types.js").Overview} Overview
 * @typedef {import("./types.js").State} State
 * @typedef {import("./types.js").Translate} Translate
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").View} View
 */

/**
 * Return the response of a command. Rejects with the error of the server.
 *
 * @param {Hass} hass
 * @param {string} name
 * @param {Record<string, unknown>} [data]
 * @returns {Promise<any>}
 */
export function call(hass, name, data) {
  return hass.callWS({ ...data, type: `${DOMAIN}/${name}` });
}

/**
 * Call back with each event of the conversations' figures, until the returned function is called.
 *
 * @param {Hass} hass
 * @param {(event: import("./types.js").FiguresEvent) => void} callback
 */
export function subscribe(hass, callback) {
  return hass.connection.subscribeMessage(callback, { type: `${DOMAIN}/subscribe` });
}

/** The translations that are being loaded, by language, category and domain. @type {Map<string, Promise<any>>} */
const loading = new Map();

/**
 * Return the function that translates texts of a category. While they are loaded, the frontend gives a second caller a
 * function without them, so the callers share the first one's.
 *
 * @param {Hass} hass
 * @param {string} category
 * @param {string} domain
 * @returns {Promise<any>}
 */
function loadCategory(hass, category, domain) {
  const key = `${hass.language} ${category} ${domain}`;
  const shared = loading.get(key);
  if (shared) return shared;
  const own = hass.loadBackendTranslation(category, domain).finally(() => loading.delete(key));
  loading.set(key, own);
  return own;
}

/**
 * Return the functions that translate texts: those of the page, and the values of selectors.
 *
 * @param {Hass} hass
 * @returns {Promise<Pick<Context, "t" | "label">>}
 */
export async function loadTexts(hass) {
  const page = await loadCategory(hass, "config_panel", DOMAIN);
  const selectors = await loadCategory(hass, "selector", DOMAIN);
  return {
    t: (key, placeholders) => page(`component.${DOMAIN}.config_panel.${key}`, placeholders) || key,
    label: (selector, value) => selectors(`component.${DOMAIN}.selector.${selector}.options.${value}`) || value,
  };
}

/**
 * Return the text of an error, in the language of the user if the server named a translation.
 *
 * @param {Hass} hass
 * @param {Translate} t
 * @param {any} error
 * @returns {Promise<string>}
 */
export async function describeError(hass, t, error) {
  if (error === ERR_CONNECTION_LOST) return t("panel.connection_lost");
  if (error?.code === "unauthorized") return t("panel.unauthorized");
  const { translation_key: key, translation_domain: domain, translation_placeholders: placeholders } = error ?? {};
  if (key && domain) {
    const localize = await loadCategory(hass, "exceptions", domain);
    const text = localize(`component.${domain}.exceptions.${key}.message`, placeholders);
    if (text) return text;
  }
  return String(error?.message || t("panel.failed"));
}

/**
 * End a subscription, also one that is still being made.
 *
 * @param {Promise<() => unknown> | undefined} subscription
 */
export async function unsubscribe(subscription) {
  try {
    await (await subscription)?.();
  } catch {
    // The connection is gone, and with it the subscription.
  }
}
