/**
 * Writes numbers, times, money and durations as the user's profile says.
 */

/** @typedef {Pick<import("./types.js").Hass, "locale" | "language" | "config">} Profile */

/** The language whose numbers look like a choice in the profile. @type {Record<string, string[]>} */
const NUMBER_LANGUAGES = {
  comma_decimal: ["en-US", "en"],
  decimal_comma: ["de", "es", "it"],
  space_comma: ["fr", "sv", "cs"],
  quote_decimal: ["de-CH"],
};
const UNKNOWN = "–";
const BYTE_UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"];

/**
 * Return a number as text, or a dash if there is none.
 *
 * @param {Profile} hass
 * @param {number | null | undefined} value
 * @param {Intl.NumberFormatOptions} [options]
 */
export function formatNumber(hass, value, options) {
  if (typeof value !== "number" || !Number.isFinite(value)) return UNKNOWN;
  const format = hass.locale?.number_format ?? "language";
  if (format === "none") return new Intl.NumberFormat("en-US", { ...options, useGrouping: false }).format(value);
  const languages = format === "system" ? undefined : (NUMBER_LANGUAGES[format] ?? findLanguage(hass));
  return new Intl.NumberFormat(languages, options).format(value);
}

/**
 * Return a share from 0 to 1 as percent.
 *
 * @param {Profile} hass
 * @param {number | null | undefined} share
 */
export function formatShare(hass, share) {
  return formatNumber(hass, share, { style: "percent", maximumFractionDigits: 0 });
}

/**
 * Return the number of decimals for amounts of money in one column: enough for the cost of a single turn.
 *
 * @param {(number | null | undefined)[]} values
 */
export function chooseMoneyDigits(values) {
  return values.some((value) => value && Math.abs(value) < 1) ? 4 : 2;
}

/**
 * Return an amount of money.
 *
 * @param {Profile} hass
 * @param {number | null | undefined} value
 * @param {string} [currency]
 * @param {number} [digits] the number of decimals
 */
export function formatMoney(hass, value, currency = "USD", digits = chooseMoneyDigits([value])) {
  return formatNumber(hass, value, {
    style: "currency",
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/**
 * Return a list as text, with "and" before its last part.
 *
 * @param {Profile} hass
 * @param {string[]} parts
 */
export function formatList(hass, parts) {
  return new Intl.ListFormat(findLanguage(hass), { type: "conjunction" }).format(parts);
}

/**
 * Return a duration in the two largest of days, hours, minutes and seconds, or below a second in milliseconds.
 *
 * @param {Profile} hass
 * @param {number | null | undefined} seconds
 */
export function formatDuration(hass, seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return UNKNOWN;
  if (seconds > 0 && seconds < 0.95) return formatUnit(hass, Math.ceil(seconds * 1000), "millisecond", 0);
  if (seconds < 60) return formatUnit(hass, seconds, "second", seconds < 10 ? 1 : 0);
  const whole = Math.round(seconds);
  /** @type {[number, string][]} */
  const parts = [
    [Math.floor(whole / 86400), "day"],
    [Math.floor(whole / 3600) % 24, "hour"],
    [Math.floor(whole / 60) % 60, "minute"],
    [whole % 60, "second"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => formatUnit(hass, count, unit, 0)).join(" ");
}

/**
 * Return a number of days with its unit in full.
 *
 * @param {Profile} hass
 * @param {number} days
 */
export function formatDays(hass, days) {
  return formatUnit(hass, days, "day", 0, "long");
}

/**
 * Return a size in the largest unit that leaves at least one.
 *
 * @param {Profile} hass
 * @param {number | null | undefined} bytes
 */
export function formatBytes(hass, bytes) {
  if (typeof bytes !== "number" || !Number.isFinite(bytes)) return UNKNOWN;
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), BYTE_UNITS.length - 1);
  return formatUnit(hass, bytes / 1000 ** power, BYTE_UNITS[power] ?? "byte", power ? 1 : 0);
}

/**
 * Return a date with its time, or a dash if there is none.
 *
 * @param {Profile} hass
 * @param {string | null | undefined} iso
 */
export function formatTime(hass, iso) {
  return formatDate(hass, iso, { dateStyle: "medium", timeStyle: "short" });
}

/**
 * Return a date without its time. A day such as "2026-11-27" is the same day in every time zone.
 *
 * @param {Profile} hass
 * @param {string | null | undefined} iso
 */
export function formatDay(hass, iso) {
  const isDay = typeof iso === "string" && /^\d{4}-\d\d-\d\d$/.test(iso);
  return formatDate(hass, iso, { dateStyle: "medium", ...(isDay && { timeZone: "UTC" }) });
}

/**
 * Return a day such as "2026-11-27" without its year.
 *
 * @param {Profile} hass
 * @param {string} day
 */
export function formatShortDay(hass, day) {
  return formatDate(hass, day, { day: "numeric", month: "short", timeZone: "UTC" });
}

/**
 * Return the month of a day such as "2026-11-01".
 *
 * @param {Profile} hass
 * @param {string} day
 */
export function formatMonth(hass, day) {
  return formatDate(hass, day, { month: "short", year: "numeric", timeZone: "UTC" });
}

/**
 * @param {Profile} hass
 * @param {string | null | undefined} iso
 * @param {Intl.DateTimeFormatOptions} options
 */
function formatDate(hass, iso, options) {
  const time = iso ? new Date(iso) : null;
  if (!time || Number.isNaN(time.getTime())) return UNKNOWN;
  const clock = hass.locale?.time_format;
  const languages = clock === "system" ? undefined : findLanguage(hass);
  const zone = hass.locale?.time_zone === "server" ? { timeZone: hass.config?.time_zone } : {};
  const hours = options.timeStyle && (clock === "12" || clock === "24") ? { hour12: clock === "12" } : {};
  return new Intl.DateTimeFormat(languages, { ...zone, ...hours, ...options }).format(time);
}

/**
 * Return a number with its unit. The unit is in the user's language, the number in the format of the profile.
 *
 * @param {Profile} hass
 * @param {number} value
 * @param {string} unit
 * @param {number} digits
 * @param {"short" | "long"} [unitDisplay]
 */
function formatUnit(hass, value, unit, digits, unitDisplay = "short") {
  const options = { maximumFractionDigits: digits };
  const units = new Intl.NumberFormat(findLanguage(hass), { ...options, style: "unit", unit, unitDisplay });
  const parts = units.formatToParts(value);
  const first = parts.findIndex(({ type }) => type === "integer");
  return parts
    .map((part, place) => {
      if (part.type === "literal" || part.type === "unit") return part.value;
      return place === first ? formatNumber(hass, value, options) : "";
    })
    .join("");
}

/** @param {Profile} hass */
function findLanguage(hass) {
  return hass.locale?.language ?? hass.language;
}
