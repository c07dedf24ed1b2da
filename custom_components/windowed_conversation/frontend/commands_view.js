/**
 * Commands that went to a model, with Home Assistant's own sentence for the same. Nothing is changed here.
 */

import { formatMoney, formatNumber } from "./format.js";
import { h } from "./html.js";
import { renderTime } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {{
 *   said: string, count: number, cost: number | null, last: string, tool: string,
 *   target: { entity_id: string, name: string } | null, sentence: string | null,
 * }} Group
 */

/** @type {import("./types.js").View} */
export const view = { name: "commands", load: (context) => context.call("model_commands"), render };

/**
 * @param {Context} context
 * @param {import("./types.js").State} _state
 * @param {{ groups: Group[] }} data
 */
function render(context, _state, { groups }) {
  const { t } = context;
  return h(
    "section",
    { class: "card" },
    h("h2", null, t("panel.tab_commands")),
    groups.length
      ? [
          h("p", null, t("commands.about")),
          h("p", { class: "quiet" }, t("commands.where")),
          h(
            "ul",
            { class: "items" },
            groups.map((group) => renderGroup(context, group)),
          ),
        ]
      : h("p", null, t("commands.none")),
  );
}

/**
 * @param {Context} context
 * @param {Group} group
 */
function renderGroup(context, group) {
  const { hass, t } = context;
  const { cost, sentence, target } = group;
  const did = target
    ? t("commands.did_with", { tool: group.tool, entity: target.name })
    : t("commands.did", { tool: group.tool });
  return h(
    "li",
    { key: group.said },
    h("p", { class: "said", dir: "auto" }, group.said),
    h(
      "p",
      { class: "quiet" },
      t("commands.often", { count: formatNumber(hass, group.count) }),
      cost !== null && ` · ${formatMoney(hass, cost)}`,
      " · ",
      t("commands.last"),
      " ",
      renderTime(context, group.last),
      " · ",
      h("bdi", null, did),
    ),
    sentence && h("p", { dir: "auto" }, t("commands.sentence", { sentence })),
    target && h("p", null, renderAliasLink(context, target)),
  );
}

/**
 * Return a link that opens the settings of an entity, which have its aliases.
 *
 * @param {Context} context
 * @param {{ entity_id: string, name: string }} target
 */
function renderAliasLink({ t }, { entity_id: entityId, name }) {
  const open = (/** @type {Event} */ event) => {
    event.preventDefault();
    const detail = { entityId, view: "settings" };
    event.target?.dispatchEvent(new CustomEvent("hass-more-info", { bubbles: true, composed: true, detail }));
  };
  const href = "/config/voice-assistants/expose?assistants=conversation";
  return h("a", { href, onclick: open }, t("commands.aliases", { entity: name }));
}
