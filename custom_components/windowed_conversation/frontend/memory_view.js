/**
 * What memory knows about the user, who can hear it, and how long things are kept. Everybody can correct and delete it.
 */

import { formatDay, formatDays, formatList, formatNumber, formatTime } from "./format.js";
import { h } from "./html.js";
import { redraw } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").State} State
 * @typedef {{
 *   id: string, text: string, time: string, person: string | null, private: boolean, confirmed: string,
 *   tellings: number, source: string, quote: string, last_used: string | null,
 *   in_profile: boolean, replaced: string,
 * }} Fact
 * @typedef {{ id: string, text: string, time: string, quote: string, replaces: string }} Suggestion
 * @typedef {{
 *   name: string, memory: boolean, memory_days: number, record: string, record_text_days: number, record_days: number,
 *   persistence: string, entity_id: string,
 * }} Retention
 * @typedef {{
 *   person: { id: string, name: string } | null, suggestions: Suggestion[], facts: Fact[], home_facts_total: number,
 *   devices: { id: string, name: string }[], retention: Retention[],
 * }} Data
 * @typedef {{
 *   facts: number, turns: number, summaries: number, exchanges: number, memories?: { id: string, text: string }[],
 * }} Preview
 */

const MAX_FACT_CHARS = 300;

const WEEK_MS = 7 * 86_400_000;

/** The decisions about a suggestion with their labels. @type {[string, string][]} */
const DECISIONS = [
  ["keep", "memory.for_me"],
  ["share", "memory.for_everybody"],
  ["dismiss", "memory.wrong"],
];

/**
 * What is not part of the address: the words that are searched for, the fact whose form is open, and the facts whose
 * details were opened, because a thousand facts with their buttons take a second.
 */
const local = { search: "", edited: "", opened: new Set() };

/**
 * Return the facts that contain all words of a search.
 *
 * @param {Fact[]} facts
 * @param {string} search
 */
export function filterFacts(facts, search) {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return facts.filter((fact) => {
    const text = `${fact.text} ${fact.quote}`.toLocaleLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** @type {import("./types.js").View} */
export const view = { name: "memory", load: (context) => context.call("about_me"), render };

/**
 * @param {Context} context
 * @param {State} _state
 * @param {Data} data
 */
function render(context, _state, data) {
  const { hass, t } = context;
  const facts = filterFacts(data.facts, local.search);
  const own = facts.filter((fact) => fact.person !== null);
  const homes = facts.filter((fact) => fact.person === null);
  const shownTotal = data.facts.filter((fact) => fact.person === null).length;
  const weekAgo = Date.now() - WEEK_MS;
  const isNew = (/** @type {Suggestion} */ { time }) => Date.parse(time) >= weekAgo;
  return [
    renderSuggestions(context, "learned_this_week", data.suggestions.filter(isNew)),
    renderSuggestions(
      context,
      "learned_earlier",
      data.suggestions.filter((each) => !isNew(each)),
    ),
    h(
      "section",
      { class: "card", key: "own" },
      h("h2", null, t("memory.title")),
      !data.person && h("p", null, t("memory.no_person")),
      data.facts.length > 0 && renderSearch(context),
      data.person && renderFacts(context, own, t("memory.none_own")),
      data.person && h("button", { type: "button", class: "danger", onclick: forgetAll }, t("memory.forget_all")),
    ),
    h(
      "section",
      { class: "card", key: "home" },
      h("h2", null, t("memory.home")),
      renderFacts(context, homes, t("memory.none_home")),
      data.home_facts_total > shownTotal &&
        h(
          "p",
          { class: "quiet" },
          t("memory.and_more", { count: formatNumber(hass, data.home_facts_total - shownTotal) }),
        ),
    ),
    data.person && renderDevices(context, data),
    renderRetention(context, data),
  ];

  function forgetAll() {
    forget(context, { everything: true }, t("memory.forget_all"));
  }
}

/**
 * @param {Context} context
 * @param {string} title
 * @param {Suggestion[]} suggestions
 */
function renderSuggestions(context, title, suggestions) {
  const { hass, t } = context;
  const decide = (/** @type {string} */ fact, /** @type {string} */ decision) =>
    context.act(() => context.call("decide_suggestion", { fact, decision }));
  return (
    suggestions.length > 0 &&
    h(
      "section",
      { class: "card", key: title },
      h("h2", null, t(`memory.${title}`)),
      h(
        "ul",
        { class: "items inbox" },
        suggestions.map(({ id, text, time, quote, replaces }) =>
          h(
            "li",
            { key: id },
            h("p", { class: "said", dir: "auto" }, text),
            h("p", { class: "quiet small" }, t("memory.from_learned", { day: formatDay(hass, time) })),
            h("p", { class: "quiet small", dir: "auto" }, t("memory.quote", { quote })),
            replaces && h("p", { class: "small", dir: "auto" }, t("memory.would_replace", { text: replaces })),
            h(
              "div",
              { class: "row" },
              DECISIONS.map(([decision, label]) =>
                h(
                  "button",
                  { type: "button", onclick: () => decide(id, decision), "aria-label": `${t(label)}: ${text}` },
                  t(label),
                ),
              ),
            ),
          ),
        ),
      ),
    )
  );
}

/** @param {Context} context */
function renderSearch(context) {
  const search = (/** @type {Event} */ event) => {
    local.search = /** @type {HTMLInputElement} */ (event.target).value;
    redraw(context);
  };
  return h(
    "label",
    { key: "search" },
    context.t("memory.search"),
    h("input", { type: "search", ".value": local.search, oninput: search }),
  );
}

/**
 * @param {Context} context
 * @param {Fact[]} facts
 * @param {string} none
 */
function renderFacts(context, facts, none) {
  if (!facts.length) return h("p", { class: "quiet" }, local.search ? context.t("turns.none") : none);
  return h(
    "ul",
    { class: "items facts" },
    facts.map((fact) =>
      h("li", { key: fact.id }, local.edited === fact.id ? renderForm(context, fact) : renderFact(context, fact)),
    ),
  );
}

/**
 * @param {Context} context
 * @param {Fact} fact
 */
function renderFact(context, fact) {
  const { t } = context;
  const edit = (/** @type {Event} */ event) => {
    const item = /** @type {Element} */ (event.currentTarget).closest("li");
    local.edited = fact.id;
    redraw(context);
    item?.querySelector("input")?.focus();
  };
  const open = (/** @type {Event} */ event) => {
    if (!(/** @type {HTMLDetailsElement} */ (event.target).open) || local.opened.has(fact.id)) return;
    local.opened.add(fact.id);
    redraw(context);
  };
  return h(
    "details",
    { key: "fact", ontoggle: open },
    h(
      "summary",
      { class: "fact" },
      h("span", { class: "said", dir: "auto" }, fact.text),
      h("span", { class: "quiet small" }, t(fact.private ? "memory.only_me" : "memory.everyone")),
    ),
    local.opened.has(fact.id) && renderDetails(context, fact, edit),
  );
}

/**
 * @param {Context} context
 * @param {Fact} fact
 * @param {(event: Event) => void} edit
 */
function renderDetails(context, fact, edit) {
  const { t } = context;
  const use = describeUse(context, fact);
  return [
    h("p", { class: "quiet small", key: "origin" }, describeOrigin(context, fact)),
    fact.quote && h("p", { class: "quiet small", key: "quote", dir: "auto" }, t("memory.quote", { quote: fact.quote })),
    use && h("p", { class: "quiet small", key: "use" }, use),
    fact.replaced &&
      h("p", { class: "quiet small", key: "replaced", dir: "auto" }, t("memory.replaced", { text: fact.replaced })),
    h(
      "div",
      { class: "row", key: "buttons" },
      h(
        "button",
        { type: "button", onclick: edit, "aria-label": `${t("memory.correct")}: ${fact.text}` },
        t("memory.correct"),
      ),
      fact.replaced &&
        h(
          "button",
          {
            type: "button",
            onclick: () => context.act(() => context.call("bring_back_fact", { fact: fact.id })),
            "aria-label": `${t("memory.bring_back")}: ${fact.replaced}`,
          },
          t("memory.bring_back"),
        ),
      h(
        "button",
        {
          type: "button",
          onclick: () => forget(context, { ids: [fact.id] }, t("conversation.forget")),
          "aria-label": `${t("conversation.forget")}: ${fact.text}`,
        },
        t("conversation.forget"),
      ),
    ),
  ];
}

/**
 * Return when a fact was used, and whether it is sent with every question, in sentences, or an empty text.
 *
 * @param {Context} context
 * @param {Fact} fact
 */
function describeUse({ hass, t }, { last_used: lastUsed, in_profile: isSentAlways }) {
  const sentences = [
    lastUsed && t("memory.last_used", { time: formatTime(hass, lastUsed) }),
    isSentAlways && t("memory.in_profile"),
  ];
  return sentences.filter(Boolean).join(" ");
}

/**
 * Return where a fact came from, whose it is, and how often it was stated, in sentences.
 *
 * @param {Context} context
 * @param {Fact} fact
 */
export function describeOrigin({ hass, t }, fact) {
  const key = ["said", "tool", "learned", "action"].includes(fact.source)
    ? `memory.from_${fact.source}`
    : "memory.from_other";
  return [
    t(key, { day: formatDay(hass, fact.time) }),
    fact.person === null ? t("memory.of_home") : t("memory.of_person", { name: fact.person }),
    fact.tellings > 1 &&
      t("memory.told_often", {
        count: formatNumber(hass, fact.tellings),
        day: formatDay(hass, fact.confirmed),
      }),
  ]
    .filter(Boolean)
    .join(" ");
}

/**
 * @param {Context} context
 * @param {Fact} fact
 */
function renderForm(context, fact) {
  const { t } = context;
  const close = () => {
    local.edited = "";
    redraw(context);
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const input = /** @type {HTMLInputElement | null} */ (
      /** @type {HTMLElement} */ (event.currentTarget).querySelector("input")
    );
    const text = input?.value.trim() ?? "";
    if (!text || text === fact.text) {
      close();
      return;
    }
    await context.act(async () => {
      await context.call("correct_fact", { fact: fact.id, text });
      local.edited = "";
    });
  };
  return h(
    "form",
    { key: "form", onsubmit: submit },
    h(
      "label",
      { class: "wide" },
      t("memory.new_text"),
      h("input", { required: true, maxlength: MAX_FACT_CHARS, ".value": fact.text, dir: "auto" }),
    ),
    h(
      "div",
      { class: "row" },
      h("button", { type: "submit" }, t("memory.save")),
      h("button", { type: "button", onclick: close }, t("panel.cancel")),
    ),
  );
}

/**
 * Show what would be forgotten, and forget it if the user agrees.
 *
 * @param {Context} context
 * @param {Record<string, unknown>} conditions
 * @param {string} title
 */
async function forget(context, conditions, title) {
  /** @type {Preview} */
  let preview;
  try {
    preview = await context.call("forget", { ...conditions, dry_run: true });
  } catch (error) {
    context.say(await context.describe(error), { isError: true });
    return;
  }
  const isSure = await context.confirm({
    title,
    text: describeLoss(context, preview),
    content: renderPreview(context, preview),
    confirm: context.t("conversation.forget"),
    isDangerous: true,
  });
  if (isSure) await context.act(() => context.call("forget", conditions));
}

/**
 * Return what would be deleted as a sentence, without the kinds of which there is nothing.
 *
 * @param {Context} context
 * @param {Preview} preview
 */
export function describeLoss({ hass, t }, { facts, turns, summaries, exchanges }) {
  /** @type {[string, number][]} */
  const counts = [
    ["memory.lost_facts", facts],
    ["memory.lost_turns", turns],
    ["memory.lost_summaries", summaries],
    ["memory.lost_exchanges", exchanges],
  ];
  const parts = counts
    .filter(([, count]) => count > 0)
    .map(([key, count]) => t(key, { count: formatNumber(hass, count) }));
  return parts.length ? t("memory.preview", { what: formatList(hass, parts) }) : t("memory.none_own");
}

/**
 * Return the texts that would be forgotten, and how many more there are.
 *
 * @param {Context} context
 * @param {Preview} preview
 */
export function renderPreview({ hass, t }, { facts, turns, summaries, memories = [] }) {
  const more = facts + turns + summaries - memories.length;
  return h(
    "ul",
    { class: "items lost" },
    memories.map((memory) => h("li", { key: memory.id, class: "text", dir: "auto" }, memory.text)),
    more > 0 && h("li", { class: "quiet" }, t("memory.and_more", { count: formatNumber(hass, more) })),
  );
}

/**
 * @param {Context} context
 * @param {Data} data
 */
function renderDevices({ t }, { devices }) {
  return h(
    "section",
    { class: "card", key: "devices" },
    h("h2", null, t("memory.devices")),
    h("p", { class: "quiet" }, t(devices.length ? "memory.about_devices" : "memory.no_devices")),
    devices.length > 0 &&
      h(
        "ul",
        null,
        devices.map((device) => h("li", { key: device.id, dir: "auto" }, device.name)),
      ),
  );
}

/**
 * @param {Context} context
 * @param {Data} data
 */
function renderRetention(context, { retention }) {
  return h(
    "section",
    { class: "card", key: "retention" },
    h("h2", null, context.t("memory.retention")),
    retention.map((agent) =>
      h(
        "div",
        { key: agent.entity_id, class: "part-of" },
        h("h3", { dir: "auto" }, agent.name),
        describeRetention(context, agent).map((sentence) => h("p", null, sentence)),
      ),
    ),
  );
}

/**
 * Return how long an agent keeps things, in sentences.
 *
 * @param {Context} context
 * @param {Retention} agent
 */
export function describeRetention({ hass, label, t }, agent) {
  const days = (/** @type {number} */ value) => ({ days: formatDays(hass, value) });
  const texts = agent.record_text_days
    ? t("memory.keeps_texts", days(agent.record_text_days))
    : t("memory.keeps_no_texts");
  return [
    agent.memory ? t("memory.keeps_memory", days(agent.memory_days)) : t("memory.keeps_no_memory"),
    ...(agent.record_days
      ? [t("memory.keeps_figures", days(agent.record_days)), texts]
      : [t("memory.keeps_no_figures")]),
    t("memory.keeps_conversations", { which: label("persistence", agent.persistence) }),
  ];
}
