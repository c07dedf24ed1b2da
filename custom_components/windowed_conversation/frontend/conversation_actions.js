/**
 * What can be done with a conversation and its exchanges.
 */

import { formatNumber } from "./format.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").Conversation} Conversation
 * @typedef {import("./types.js").Exchange} Exchange
 * @typedef {import("./types.js").Row} Row
 */

const EPHEMERAL = "ephemeral";
const MAX_FILE_BYTES = 8_000_000;
// Home Assistant closes a connection that sends it a message of more than 4 MiB.
const MAX_SENT_BYTES = 4_000_000;
const REVOKE_DELAY = 10_000;
/** The error of the server for what is no export, or too large. */
const MALFORMED = { translation_domain: "windowed_conversation", translation_key: "import_malformed" };

/**
 * Return the change of tags that makes an exchange leave the window first, or in order again.
 *
 * @param {Pick<Exchange, "tags">} exchange
 */
export function chooseEviction({ tags }) {
  return tags.includes(EPHEMERAL)
    ? { key: "evict_in_order", add: [], remove: [EPHEMERAL] }
    : { key: "evict_first", add: [EPHEMERAL], remove: [] };
}

/**
 * @param {Context} context
 * @param {HTMLFormElement} form
 */
export async function importFile(context, form) {
  const fields = new FormData(form);
  const file = /** @type {File} */ (fields.get("file"));
  const entity_id = String(fields.get("agent"));
  const isDone = await context.act(async () => {
    const content = file.size <= MAX_FILE_BYTES && parseExport(await file.text());
    if (!content) throw MALFORMED;
    const { conversation_id } = await context.call("import_conversation", { entity_id, export: content });
    context.update({ entity: entity_id, conversation: conversation_id, exchange: null });
  });
  if (isDone) form.reset();
}

/**
 * Return the content of an exported file, or null if it is no object, or too large to be sent.
 *
 * @param {string} text
 * @returns {object | null}
 */
export function parseExport(text) {
  try {
    const content = JSON.parse(text);
    return typeof content === "object" && !Array.isArray(content) && !isTooLarge(content) ? content : null;
  } catch {
    return null;
  }
}

/** @param {object} content */
function isTooLarge(content) {
  return new Blob([JSON.stringify(content)]).size > MAX_SENT_BYTES;
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
async function readExport(context, opened) {
  return (await context.call("get_conversation", { ...idsOf(opened), content: "export" })).export;
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 * @param {Exchange} exchange
 * @param {{ add: string[], remove: string[] }} change
 */
export function tag(context, opened, exchange, { add, remove }) {
  return context.act(async () => {
    // Exchanges are counted back from the newest one, and there may be a newer one than when this was drawn.
    const { exchanges } = await context.call("conversation", idsOf(opened));
    const current = exchanges.find((/** @type {Exchange} */ each) => each.number === exchange.number);
    const back = current?.exchange ?? exchange.exchange;
    await context.call("tag_exchange", { ...idsOf(opened), exchange: back, add, remove });
  });
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
export function summarize(context, opened) {
  return context.act(() => context.call("summarize_conversation", idsOf(opened)));
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
export async function fork(context, opened) {
  const { t } = context;
  const name = await context.ask({
    title: t("conversation.fork"),
    label: t("conversation.fork_name"),
    confirm: t("conversation.fork"),
  });
  if (!name) return;
  await context.act(async () => {
    const { entity_id } = opened;
    const content = await readExport(context, opened);
    if (isTooLarge(content)) throw MALFORMED;
    await context.call("import_conversation", { entity_id, conversation_id: name, export: content });
    context.update({ entity: opened.entity_id, conversation: name, exchange: null });
  });
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
export async function forget(context, opened) {
  const { t, hass } = context;
  const isConfirmed = await context.confirm({
    title: t("conversation.forget_title"),
    text: t("conversation.forget_text", { exchanges: formatNumber(hass, opened.figures.exchanges) }),
    confirm: t("conversation.forget"),
    isDangerous: true,
  });
  if (!isConfirmed) return;
  await context.act(async () => {
    await context.call("delete_conversation", idsOf(opened));
    context.update({ entity: null, conversation: null, exchange: null }, { replace: true });
  });
}

/**
 * @param {Context} context
 * @param {Conversation} opened
 */
export function download(context, opened) {
  return context.act(async () => {
    const content = await readExport(context, opened);
    const url = URL.createObjectURL(new Blob([JSON.stringify(content)], { type: "application/json" }));
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = `${opened.conversation_id.replace(/[^\w.-]+/g, "_")}.json`;
    anchor.click();
    // The browser reads it only after this.
    setTimeout(() => URL.revokeObjectURL(url), REVOKE_DELAY);
  });
}

/** @param {Row} row */
function idsOf({ entity_id, conversation_id }) {
  return { entity_id, conversation_id };
}
