/**
 * What the turns of the record cost, by day, person and agent.
 */

import { chooseMoneyDigits, formatDay, formatMoney, formatNumber } from "./format.js";
import { h } from "./html.js";
import { renderBar, renderPairs, renderSelect, renderTable } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").State} State
 * @typedef {{
 *   day: string, entity_id: string, agent: string, person: string | null, turns: number, requests: number,
 *   input_tokens: number, cached_tokens: number, output_tokens: number, cost: number | null, without_price: number,
 * }} CostRow
 * @typedef {{
 *   name: string | null, turns: number, requests: number, input: number, cached: number, output: number,
 *   cost: number | null, withoutPrice: number,
 * }} Sum
 * @typedef {{ rows: CostRow[], currency: string }} Data
 */

const DAYS = ["7", "30", "90"];
const DEFAULT_DAYS = "30";

/**
 * Return the sum of rows. Its cost is that of the rows with a known one, and null if there are none.
 *
 * @param {CostRow[]} rows
 * @param {string | null} [name]
 * @returns {Sum}
 */
export function sumRows(rows, name = null) {
  const add = (/** @type {(row: CostRow) => number} */ value) => rows.reduce((sum, row) => sum + value(row), 0);
  return {
    name,
    turns: add((row) => row.turns),
    requests: add((row) => row.requests),
    input: add((row) => row.input_tokens),
    cached: add((row) => row.cached_tokens),
    output: add((row) => row.output_tokens),
    cost: rows.some((row) => row.cost !== null) ? add((row) => row.cost ?? 0) : null,
    withoutPrice: add((row) => row.without_price),
  };
}

/**
 * Return the sums of rows by a name: the largest cost first, and of equal ones that with more tokens.
 *
 * @param {CostRow[]} rows
 * @param {(row: CostRow) => string | null} getName
 * @returns {Sum[]}
 */
export function groupRows(rows, getName) {
  return [...Map.groupBy(rows, getName)]
    .map(([name, group]) => sumRows(group, name))
    .sort((one, other) => (other.cost ?? -1) - (one.cost ?? -1) || other.input - one.input);
}

/**
 * Return the sums of rows by day, newest first.
 *
 * @param {CostRow[]} rows
 * @returns {Sum[]}
 */
export function groupByDay(rows) {
  return groupRows(rows, (row) => row.day).sort((one, other) => String(other.name).localeCompare(String(one.name)));
}

/**
 * Return the share of each sum in the largest one, by cost, or by tokens if no cost is known.
 *
 * @param {Sum[]} sums
 * @returns {number[]}
 */
export function shareSums(sums) {
  const byCost = sums.some((sum) => sum.cost);
  const values = sums.map((sum) => (byCost ? (sum.cost ?? 0) : sum.input + sum.output));
  const largest = Math.max(0, ...values);
  return values.map((value) => (largest ? value / largest : 0));
}

/** @type {import("./types.js").View} */
export const view = {
  name: "costs",
  load: (context, state) => context.call("costs", { days: Number(chooseDays(state)) }),
  render,
};

/** @param {State} state */
function chooseDays({ days }) {
  return days && DAYS.includes(days) ? days : DEFAULT_DAYS;
}

/**
 * @param {Context} context
 * @param {State} state
 * @param {Data} data
 */
function render(context, state, { rows, currency }) {
  const { t } = context;
  const days = DAYS.map((value) => /** @type {[string, string]} */ ([value, t("costs.last_days", { days: value })]));
  const unpriced = groupRows(
    rows.filter((row) => row.without_price),
    (row) => row.agent,
  );
  const section = (
    /** @type {[string, string]} */ titles,
    /** @type {Sum[]} */ sums,
    /** @type {(name: any) => string} */ name,
  ) =>
    h(
      "section",
      { class: "card", key: titles[0] },
      h("h2", null, titles[0]),
      renderSums(context, titles, sums, name, currency),
    );
  return [
    h(
      "section",
      { class: "card", key: "total" },
      h("h2", null, t("panel.tab_costs")),
      renderSelect(context, "days", t("costs.span"), chooseDays(state), days),
      rows.length ? renderTotal(context, sumRows(rows), currency) : h("p", null, t("costs.none")),
      unpriced.map((sum) =>
        h("p", { class: "quiet" }, t("costs.without_price", { agent: sum.name ?? "", count: sum.withoutPrice })),
      ),
    ),
    rows.length > 0 && [
      section([t("costs.by_day"), t("costs.by_day")], groupByDay(rows), (name) => formatDay(context.hass, name)),
      section(
        [t("costs.by_person"), t("turns.person")],
        groupRows(rows, (row) => row.person),
        (name) => name ?? t("turns.unknown_speaker"),
      ),
      section(
        [t("costs.by_agent"), t("panel.agent")],
        groupRows(rows, (row) => row.agent),
        (name) => name,
      ),
    ],
  ];
}

/**
 * @param {Context} context
 * @param {Sum} sum
 * @param {string} currency
 */
function renderTotal({ hass, t }, sum, currency) {
  const number = (/** @type {number} */ value) => formatNumber(hass, value);
  return renderPairs([
    [t("turns.cost"), formatMoney(hass, sum.cost, currency)],
    [t("panel.tab_turns"), number(sum.turns)],
    [t("why.requests"), number(sum.requests)],
    [
      t("turns.tokens"),
      t("turns.token_figures", { input: number(sum.input), cached: number(sum.cached), output: number(sum.output) }),
    ],
  ]);
}

/**
 * @param {Context} context
 * @param {[string, string]} titles that of the table, and that of its first column
 * @param {Sum[]} sums
 * @param {(name: any) => string} getName
 * @param {string} currency
 */
function renderSums({ hass, t }, [title, label], sums, getName, currency) {
  const number = (/** @type {number} */ value) => formatNumber(hass, value);
  const shares = shareSums(sums);
  const digits = chooseMoneyDigits(sums.map((sum) => sum.cost));
  const columns = [
    { label },
    { label: t("turns.cost"), isNumber: true },
    { label: t("panel.tab_turns"), isNumber: true },
    { label: t("turns.input"), isNumber: true },
    { label: t("turns.cached"), isNumber: true },
    { label: t("turns.output"), isNumber: true },
  ];
  const rows = sums.map((sum, place) => ({
    key: sum.name ?? "",
    cells: [
      [getName(sum.name), renderBar(shares[place] ?? 0)],
      formatMoney(hass, sum.cost, currency, digits),
      number(sum.turns),
      number(sum.input),
      number(sum.cached),
      number(sum.output),
    ],
  }));
  return renderTable(title, columns, rows);
}
