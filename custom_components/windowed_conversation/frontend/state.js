/**
 * The state of the page in its address: the view is the path, the rest is the query.
 */

/** @typedef {import("./types.js").State} State */

/** The views of the last tab. */
export const ADVANCED = ["conversation", "health", "commands"];
export const VIEWS = ["memory", "turns", "costs", ...ADVANCED];
const DEFAULT_VIEW = "memory";
// That of an agent, which its device page opens.
const TARGET_VIEW = "turns";
// An address is input like any other: longer ones are no address of ours.
const MAX_KEYS = 20;
const MAX_LENGTH = 300;

/**
 * Return the state of an address. A path that is no view is the id of an agent or of an account, as `target`.
 *
 * @param {string} base the path of the page, such as `/windowed-conversation`
 * @param {string} path
 * @param {string} query
 * @returns {State}
 */
export function parseState(base, path, query) {
  /** @type {State} */
  const state = {};
  for (const [key, value] of [...new URLSearchParams(query)].slice(0, MAX_KEYS)) {
    if (value && value.length <= MAX_LENGTH && key !== "view" && key !== "target") state[key] = value;
  }
  const name = path.startsWith(`${base}/`) ? (path.slice(base.length + 1).split("/")[0] ?? "") : "";
  if (VIEWS.includes(name)) return { ...state, view: name };
  if (!name || name.length > MAX_LENGTH) return { ...state, view: DEFAULT_VIEW };
  return { ...state, target: decodePart(name), view: TARGET_VIEW };
}

/**
 * Return the address of a state.
 *
 * @param {string} base
 * @param {State} state
 */
export function formatUrl(base, { view, target, ...rest }) {
  const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value)).toString();
  const name = target ? encodeURIComponent(target) : (view ?? DEFAULT_VIEW);
  return `${base}/${name}${query && `?${query}`}`;
}

/**
 * Return a state with the changes of a patch. Another view begins without the details of the previous one.
 *
 * @param {State} state
 * @param {Record<string, string | null>} patch
 * @returns {State}
 */
export function patchState(state, patch) {
  /** @type {State} */
  const kept = patch.view && patch.view !== state.view ? {} : { ...state };
  delete kept.target;
  for (const [key, value] of Object.entries(patch)) {
    if (value) kept[key] = value;
    else delete kept[key];
  }
  return { ...kept, view: kept.view ?? DEFAULT_VIEW };
}

/**
 * Return the entity of the agent that an id in the address names: its own id, or that of its account.
 *
 * @param {string} target
 * @param {import("./types.js").Agent[]} agents
 * @param {import("./types.js").Hass["devices"]} devices
 * @returns {string | undefined}
 */
export function findAgent(target, agents, devices) {
  const exact = agents.find((agent) => agent.id === target || agent.entity_id === target);
  const ofAccount = (/** @type {import("./types.js").Agent} */ agent) =>
    devices?.[agent.device_id ?? ""]?.config_entries?.includes(target);
  return (exact ?? agents.find(ofAccount))?.entity_id;
}

/**
 * Return what a click on a link does: the action, unless it opens another tab or window of the browser.
 *
 * @param {() => void} action
 * @returns {(event: MouseEvent) => void}
 */
export function onFollow(action) {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    action();
  };
}

/** @param {string} part */
function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
