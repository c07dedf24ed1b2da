/**
 * What the turns of the record cost, over days and months, by kind of work, agent, model and person.
 */

import { limitSeries, renderChart } from "./chart.js";
import { chooseMoneyDigits, formatDay, formatMoney, formatMonth, formatNumber, formatShortDay } from "./format.js";
import { h } from "./html.js";
import { renderPairs, renderSelect, renderTable } from "./parts.js";

/**
 * @typedef {import("./types.js").Context} Context
 * @typedef {import("./types.js").State} State
 * @typedef {{
 *   day: string, agent: string, person: string | null, model: string | null, route: string, turns: number,
 *   requests: number, input_tokens: number, cached_tokens: number, output_tokens: number, cost: number | null,
 *   without_price: number, saved: number,
 * }} CostRow
 * @typedef {{
 *   name: string, turns: number, requests: number, input: number, cached: number, output: number,
 *   cost: number | null, withoutPrice: number, saved: number,
 * }} Sum
 * @typedef {{ rows: CostRow[], currency: string }} Data
 */

const YEAR = "366";
const DAYS = ["7", "30", "90", YEAR];
const DEFAULT_DAYS = "30";
const GROUPS = ["kind", "agent", "model", "person"];
const DAY_MS = 86_400_000;

/**
 * Return the sum of rows. Its cost is that of the rows with a known one, and null if nothing that costs is known.
 *
 * @param {CostRow[]} rows
 * @param {string} [name]
 * @returns {Sum}
 */
export function sumRows(rows, name = "") {
  const add = (/** @type {(row: CostRow) => number} */ value) => rows.reduce((sum, row) => sum + value(row), 0);
  const cost = add((row) => row.cost ?? 0);
  const withoutPrice = add((row) => row.without_price);
  return {
    name,
    turns: add((row) => row.turns),
    requests: add((row) => row.requests),
    input: add((row) => row.input_tokens),
    cached: add((row) => row.cached_tokens),
    output: add((row) => row.output_tokens),
    cost: cost || !withoutPrice ? cost : null,
    withoutPrice,
    saved: add((row) => row.saved),
  };
}

/**
 * Return the sums of rows by a name: the largest cost first, and of equal ones that with more tokens.
 *
 * @param {CostRow[]} rows
 * @param {(row: CostRow) => string} getName
 * @returns {Sum[]}
 */
export function groupRows(rows, getName) {
  return [...Map.groupBy(rows, getName)]
    .map(([name, group]) => sumRows(group, name))
    .sort((one, other) => (other.cost ?? -1) - (one.cost ?? -1) || other.input - one.input);
}

/**
 * Return the days or months from the first row to the last one, oldest first, with those that have no row.
 *
 * @param {CostRow[]} rows
 * @param {boolean} isByMonth
 * @returns {string[]}
 */
export function listDays(rows, isByMonth) {
  const known = rows.map((row) => row.day).sort();
  const days = [];
  const last = known.at(-1) ?? "";
  for (let day = known[0] ?? ""; day && day <= last; ) {
    days.push(day);
    const next = new Date(Date.parse(day) + (isByMonth ? 31 : 1) * DAY_MS).toISOString().slice(0, 10);
    day = isByMonth ? `${next.slice(0, 8)}01` : next;
  }
  return days;
}

/**
 * Return about how much the turns that no model answered would have cost, or null if that is not known.
 *
 * @param {CostRow[]} rows
 */
export function estimateLocalSaving(rows) {
  const asked = sumRows(rows.filter(({ route }) => route === "model" || route === "fallback"));
  const local = sumRows(rows.filter(({ route }) => route === "local"));
  return asked.cost && asked.turns ? (local.turns * asked.cost) / asked.turns : null;
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
  const days = chooseDays(state);
  const group = GROUPS.includes(state.by ?? "") ? (state.by ?? "") : "kind";
  const spans = DAYS.map((value) => /** @type {[string, string]} */ ([value, nameSpan(context, value)]));
  const groups = GROUPS.map((name) => /** @type {[string, string]} */ ([name, nameGroup(context, name)]));
  const unpriced = groupRows(
    rows.filter((row) => row.without_price),
    (row) => row.agent,
  );
  return [
    h(
      "section",
      { class: "card", key: "total" },
      h("h2", null, t("panel.tab_costs")),
      h(
        "div",
        { class: "row" },
        renderSelect(context, "days", t("costs.span"), days, spans),
        renderSelect(context, "by", t("costs.by"), group, groups),
      ),
      rows.length
        ? [renderOverTime(context, rows, group, days === YEAR, currency), renderTotal(context, rows, currency)]
        : h("p", null, t("costs.none")),
      unpriced.map((sum) =>
        h("p", { class: "quiet" }, t("costs.without_price", { agent: sum.name, count: sum.withoutPrice })),
      ),
    ),
    rows.length > 0 && renderTables(context, rows, group, days === YEAR, currency),
  ];
}

/**
 * @param {Context} context
 * @param {string} value
 */
function nameSpan({ t }, value) {
  return value === YEAR ? t("costs.last_months") : t("costs.last_days", { days: value });
}

/**
 * @param {Context} context
 * @param {string} group
 */
function nameGroup({ t }, group) {
  const keys = { agent: "panel.agent", model: "bar.model", person: "turns.who" };
  return t(keys[/** @type {keyof typeof keys} */ (group)] ?? "costs.kind");
}

/**
 * Return the function that names the group of a row.
 *
 * @param {Context} context
 * @param {string} group
 * @returns {(row: CostRow) => string}
 */
function chooseNames({ label, t }, group) {
  if (group === "agent") return (row) => row.agent;
  if (group === "model") return (row) => row.model ?? t("costs.no_model");
  if (group === "person") return (row) => row.person ?? t("turns.unknown_speaker");
  return (row) => label("turn_route", row.route);
}

/**
 * Return the chart of the costs, or of the tokens if no cost is known.
 *
 * @param {Context} context
 * @param {CostRow[]} rows
 * @param {string} group
 * @param {boolean} isByMonth
 * @param {string} currency
 */
function renderOverTime(context, rows, group, isByMonth, currency) {
  const { hass, t } = context;
  const hasCost = rows.some((row) => row.cost);
  const days = listDays(rows, isByMonth);
  const byName = Map.groupBy(rows, chooseNames(context, group));
  const measure = (/** @type {CostRow[]} */ some) => {
    const { cost, input, output } = sumRows(some);
    return hasCost ? (cost ?? 0) : input + output;
  };
  const series = [...byName]
    .map(([name, some]) => {
      const byDay = Map.groupBy(some, (row) => row.day);
      return { name, values: days.map((day) => measure(byDay.get(day) ?? [])) };
    })
    .filter(({ values }) => values.some(Boolean));
  const format = (/** @type {number} */ value) =>
    hasCost ? formatMoney(hass, value, currency) : formatNumber(hass, value);
  const name = (/** @type {string} */ day) => (isByMonth ? formatMonth(hass, day) : formatShortDay(hass, day));
  const title = [t("panel.tab_costs"), t(isByMonth ? "costs.by_month" : "costs.by_day"), nameGroup(context, group)];
  const unit = hasCost ? "" : t("turns.tokens");
  return renderChart(title.join(", "), days.map(name), limitSeries(series, t("costs.others")), format, unit);
}

/**
 * @param {Context} context
 * @param {CostRow[]} rows
 * @param {string} currency
 */
function renderTotal({ hass, t }, rows, currency) {
  const number = (/** @type {number} */ value) => formatNumber(hass, value);
  const sum = sumRows(rows);
  const local = sumRows(rows.filter(({ route }) => route === "local")).turns;
  const saving = estimateLocalSaving(rows);
  return renderPairs([
    [t("turns.cost"), formatMoney(hass, sum.cost, currency)],
    [t("costs.turns"), number(sum.turns)],
    [
      t("turns.tokens"),
      t("turns.token_figures", { input: number(sum.input), cached: number(sum.cached), output: number(sum.output) }),
    ],
    [t("costs.saved_cache"), sum.saved > 0 && formatMoney(hass, sum.saved, currency)],
    [
      t("costs.saved_local"),
      saving !== null && t("costs.estimate", { cost: formatMoney(hass, saving, currency), count: number(local) }),
    ],
  ]);
}

/**
 * @param {Context} context
 * @param {CostRow[]} rows
 * @param {string} group
 * @param {boolean} isByMonth
 * @param {string} currency
 */
function renderTables(context, rows, group, isByMonth, currency) {
  const { hass, t } = context;
  const title = t(isByMonth ? "costs.by_month" : "costs.by_day");
  const days = groupRows(rows, (row) => row.day).sort((one, other) => other.name.localeCompare(one.name));
  const nameDay = (/** @type {string} */ day) => (isByMonth ? formatMonth(hass, day) : formatDay(hass, day));
  const name = nameGroup(context, group);
  const groups = groupRows(rows, chooseNames(context, group));
  return [
    h(
      "section",
      { class: "card", key: "groups" },
      h("h2", null, name),
      renderSums(context, name, name, groups, (each) => each, currency),
    ),
    h(
      "section",
      { class: "card", key: "days" },
      h("h2", null, title),
      renderSums(context, title, isByMonth ? title : t("turns.day"), days, nameDay, currency),
    ),
  ];
}

/**
 * @param {Context} context
 * @param {string} title
 * @param {string} column the name of the first column
 * @param {Sum[]} sums
 * @param {(name: string) => string} getName
 * @param {string} currency
 */
function renderSums({ hass, t }, title, column, sums, getName, currency) {
  const number = (/** @type {number} */ value) => formatNumber(hass, value);
  const digits = chooseMoneyDigits(sums.map((sum) => sum.cost));
  const columns = [
    { label: column },
    { label: t("turns.cost"), isNumber: true },
    { label: t("costs.turns"), isNumber: true },
    { label: t("turns.input"), isNumber: true },
    { label: t("turns.cached"), isNumber: true },
    { label: t("turns.output"), isNumber: true },
  ];
  const rows = sums.map((sum) => ({
    key: sum.name,
    cells: [
      getName(sum.name),
      formatMoney(hass, sum.cost, currency, digits),
      number(sum.turns),
      number(sum.input),
      number(sum.cached),
      number(sum.output),
    ],
  }));
  return renderTable(title, columns, rows);
}
