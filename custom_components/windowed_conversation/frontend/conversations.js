/**
 * Chooses among conversations, names them, and keeps their figures up to date.
 */

import { formatNumber } from "./format.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").ConversationData} Data
 * @typedef {import("./types.js").Row} Row
 * @typedef {import("./types.js").State} State
 */

export const SOURCES = ["person", "satellite", "automation"];

/**
 * Return the conversations that pass the filters of a state.
 *
 * @param {Row[]} rows
 * @param {State} state
 */
export function filterRows(rows, { agent, source }) {
  return rows.filter((row) => (!agent || row.entity_id === agent) && (!source || row.source === source));
}

/**
 * Return the ids of the conversation to open: the chosen one, or else the newest one that passes the filters.
 *
 * @param {Row[]} rows
 * @param {State} state
 * @returns {{ entity_id: string, conversation_id: string } | null}
 */
export function chooseConversation(rows, state) {
  if (state.entity && state.conversation) {
    return { entity_id: state.entity, conversation_id: state.conversation };
  }
  const newest = filterRows(rows, state)[0];
  return newest ? { entity_id: newest.entity_id, conversation_id: newest.conversation_id } : null;
}

/**
 * Return the data with the figures of an event. They are stale if a conversation is new, or if the open one has changed.
 * Only then the list need not be loaded again.
 *
 * @param {State} state
 * @param {Data} data
 * @param {import("./types.js").FiguresEvent} event
 * @returns {{ data: Data, isStale: boolean, needsAll: boolean }}
 */
export function receive(state, data, event) {
  const changes = new Map(event.conversations.map((change) => [keyOf(change), change]));
  const known = new Set(data.rows.map(keyOf));
  const rows = data.rows
    .map((row) => mergeChange(row, changes.get(keyOf(row))))
    .sort((one, other) => Date.parse(other.last_used) - Date.parse(one.last_used));
  const change = data.opened && changes.get(keyOf(data.opened));
  const opened = data.opened && mergeChange(data.opened, change);
  const chosen = chooseConversation(rows, state);
  const isOther = chosen !== null && (!opened || keyOf(chosen) !== keyOf(opened));
  const isNew = event.conversations.some((each) => !known.has(keyOf(each)));
  const needsAll = isNew || isOther;
  return { data: { ...data, rows, opened }, isStale: needsAll || Boolean(change), needsAll };
}

/**
 * Return the open conversation with its newest exchanges, or null if others have changed as well.
 *
 * `newest` has the last known exchange again, because it can have been open, and those that follow it.
 *
 * @param {import("./types.js").Conversation} opened
 * @param {number} removed how many exchanges had been removed when it was loaded
 * @param {import("./types.js").Conversation} newest
 * @returns {import("./types.js").Conversation | null}
 */
export function extend(opened, removed, newest) {
  const { exchanges, figures } = newest;
  const known = opened.exchanges.slice(0, -1);
  const isExtended = known.length + exchanges.length === figures.exchanges && countRemoved(newest) === removed;
  if (!isExtended) return null;
  const moved = known.map((each, place) => ({ ...each, exchange: figures.exchanges - place }));
  return { ...newest, weight: opened.weight, exchanges: [...moved, ...exchanges] };
}

/**
 * Return whether an event has only figures of this conversation, among those of one agent or of all.
 *
 * @param {Row | undefined} row
 * @param {import("./types.js").FiguresEvent} event
 * @param {string | undefined} agent
 */
export function isOnlyAbout(row, event, agent) {
  const changes = event.conversations.filter(({ entity_id }) => !agent || entity_id === agent);
  return changes.every((change) => row && change.figures && keyOf(change) === keyOf(row));
}

/** @param {Row} row */
export function countRemoved({ figures }) {
  return figures.evicted.exchanges + figures.trims;
}

/**
 * Return a conversation with the figures of an event.
 *
 * @template {Row} T
 * @param {T} row
 * @param {Partial<Row> | null | undefined} change
 * @returns {T}
 */
export function mergeChange(row, change) {
  if (!change) return row;
  return { ...row, last_used: change.last_used ?? row.last_used, figures: { ...row.figures, ...change.figures } };
}

/** @param {{ entity_id: string, conversation_id: string }} row */
export function keyOf({ entity_id, conversation_id }) {
  return `${entity_id}\n${conversation_id}`;
}

/**
 * Return the name of a conversation: its first words, or else who speaks in it, or its id.
 *
 * @param {Pick<Row, "title" | "person" | "device" | "automation" | "conversation_id">} row
 */
export function nameConversation({ title, person, device, automation, conversation_id }) {
  return title || (person ?? automation ?? device ?? conversation_id);
}

/**
 * Return how much has left a window in a sentence, or an empty text if nothing has.
 *
 * @param {Pick<Context, "hass" | "t">} context
 * @param {Pick<import("./types.js").Figures, "evicted" | "trims">} figures
 */
export function describeEvicted({ hass, t }, { evicted, trims }) {
  if (!evicted.exchanges) return "";
  return t("conversation.evicted", {
    exchanges: formatNumber(hass, evicted.exchanges),
    tokens: formatNumber(hass, evicted.tokens),
    trims: formatNumber(hass, trims),
  });
}

/**
 * @param {Context["t"]} t
 * @param {Row} row
 */
export function describeSource(t, { source, person, device, automation }) {
  const names = [person, automation, device].filter(Boolean);
  return names.join(" · ") || (SOURCES.includes(source) ? t(`conversation.${source}`) : "");
}
