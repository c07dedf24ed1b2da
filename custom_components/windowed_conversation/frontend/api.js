/**
 * The integration's websocket commands, and the types of what the page's modules share.
 */

const DOMAIN = "windowed_conversation";
const ERR_CONNECTION_LOST = 3;

/**
 * @typedef {import("./html.js").Child} Child
 * @typedef {Record<string, string>} State
 * @typedef {(key: string, placeholders?: Record<string, string | number>) => string} Translate
 * @typedef {{ title: string, text?: string, content?: Child, confirm: string, isDangerous?: boolean }} Question
 * @typedef {{
 *   language: string,
 *   number_format?: string,
 *   time_format?: string,
 *   time_zone?: string,
 * }} Locale
 * @typedef {{
 *   callWS: (message: Record<string, unknown>) => Promise<any>,
 *   connection: {
 *     subscribeMessage: (
 *       callback: (event: any) => void, message: Record<string, unknown>
 *     ) => Promise<() => Promise<void> | void>,
 *     addEventListener: (type: string, listener: () => void) => void,
 *     removeEventListener: (type: string, listener: () => void) => void,
 *   },
 *   loadBackendTranslation: (category: string, domain: string) => Promise<Translate>,
 *   language: string,
 *   locale: Locale,
 *   config: { time_zone: string },
 *   states: Record<string, any>,
 *   entities: Record<string, { entity_id: string, platform?: string, device_id?: string }>,
 *   devices: Record<string, { config_entries?: string[] }>,
 *   dockedSidebar?: string,
 * }} Hass
 * @typedef {{
 *   entity_id: string,
 *   id: string,
 *   name: string,
 *   device_id: string | null,
 *   has_model: boolean,
 *   model: string | null,
 *   memory: boolean,
 *   memory_days: number | null,
 *   record: string,
 *   persistence: string,
 *   excluded_tags: string[],
 * }} Agent
 * @typedef {{
 *   user: { name: string, is_admin: boolean, person_id: string | null, person_name: string | null },
 *   agents: Agent[],
 *   closed_accounts: string[],
 *   has_agents: boolean,
 * }} Overview
 */

/**
 * What a view is given. `t` translates a text of the page, `label` the value of a selector of the integration's forms
 * and actions. `update` changes the state in the address and loads again; a value of null or "" removes a key. `act`
 * does something, shows its result or its error, and loads again. `ask` returns the entered text, or null.
 *
 * @typedef {{
 *   hass: Hass,
 *   overview: Overview,
 *   narrow: boolean,
 *   t: Translate,
 *   label: (selector: string, value: string) => string,
 *   call: (name: string, data?: Record<string, unknown>) => Promise<any>,
 *   update: (patch: Record<string, string | null>, options?: { replace?: boolean }) => void,
 *   link: (patch: Record<string, string | null>) => string,
 *   reload: () => Promise<void>,
 *   act: (action: () => Promise<unknown>, options?: { done?: string }) => Promise<boolean>,
 *   say: (text: string, options?: { isError?: boolean }) => void,
 *   describe: (error: unknown) => Promise<string>,
 *   confirm: (question: Question) => Promise<boolean>,
 *   ask: (question: Question & { label: string, value?: string, maxLength?: number }) => Promise<string | null>,
 * }} Context
 */

/**
 * A view. `load` returns its data, `render` its nodes. `receive` is optional: it returns the data after an event of the
 * subscription, and whether they have to be loaded again.
 *
 * @typedef {{
 *   name: string,
 *   load: (context: Context, state: State) => Promise<any>,
 *   render: (context: Context, state: State, data: any) => Child,
 *   receive?: (state: State, data: any, event: { conversations: any[] }) => { data: any, isStale: boolean },
 * }} View
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
 * @param {(event: { conversations: any[] }) => void} callback
 */
export function subscribe(hass, callback) {
  return hass.connection.subscribeMessage(callback, { type: `${DOMAIN}/subscribe` });
}

/**
 * Return the functions that translate texts: those of the page, and the values of selectors.
 *
 * @param {Hass} hass
 * @returns {Promise<Pick<Context, "t" | "label">>}
 */
export async function loadTexts(hass) {
  const page = await hass.loadBackendTranslation("config_panel", DOMAIN);
  const selectors = await hass.loadBackendTranslation("selector", DOMAIN);
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
    const localize = await hass.loadBackendTranslation("exceptions", domain);
    const text = localize(`component.${domain}.exceptions.${key}.message`, placeholders);
    if (text) return text;
  }
  return String(error?.message || t("panel.failed"));
}
