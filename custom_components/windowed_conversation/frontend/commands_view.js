/**
 * Commands that went to a model, with what would let Home Assistant answer them itself. Nothing is changed here.
 */

import { formatNumber } from "./format.js";
import { h } from "./html.js";
import { renderTime } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {{ kind: "alias", entity_id: string, alias: string } | { kind: "sentence", sentence: string }} Suggestion
 * @typedef {{
 *   said: string, count: number, last: string, tool: string,
 *   target: { entity_id: string, name: string } | null, suggestion: Suggestion | null,
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
    h("p", null, t("commands.about")),
    h("p", { class: "quiet" }, t("commands.where")),
    groups.length
      ? h(
          "ul",
          { class: "items" },
          groups.map((group) => renderGroup(context, group)),
        )
      : h("p", null, t("commands.none")),
  );
}

/**
 * @param {Context} context
 * @param {Group} group
 */
function renderGroup(context, group) {
  const { hass, t } = context;
  const did = group.target
    ? t("commands.did_with", { tool: group.tool, entity: group.target.name })
    : t("commands.did", { tool: group.tool });
  return h(
    "li",
    { key: group.said },
    h("p", { class: "said", dir: "auto" }, group.said),
    h(
      "p",
      { class: "quiet" },
      t("commands.often", { count: formatNumber(hass, group.count) }),
      " · ",
      t("commands.last"),
      " ",
      renderTime(context, group.last),
      " · ",
      h("bdi", null, did),
    ),
    h("p", { dir: "auto" }, describeSuggestion(context, group)),
  );
}

/**
 * Return what would let Home Assistant answer a command itself.
 *
 * @param {Context} context
 * @param {Group} group
 */
export function describeSuggestion({ t }, { suggestion, target }) {
  if (!suggestion) return t("commands.no_suggestion");
  if (suggestion.kind === "sentence") return t("commands.sentence", { sentence: suggestion.sentence });
  return t("commands.alias", { alias: suggestion.alias, entity: target?.name ?? suggestion.entity_id });
}
