import assert from "node:assert/strict";
import { test } from "node:test";

import {
  chooseMoneyDigits,
  formatBytes,
  formatDay,
  formatDays,
  formatDuration,
  formatMoney,
  formatNumber,
  formatShare,
  formatTime,
} from "../../custom_components/windowed_conversation/frontend/format.js";
import { PROFILE } from "./nodes.js";

const TIME = "2026-01-31T18:05:00+00:00";

/** @param {Record<string, string>} locale */
function withLocale(locale) {
  return { ...PROFILE, locale: { ...PROFILE.locale, ...locale } };
}

test("a number has the separators of the profile", () => {
  assert.equal(formatNumber(withLocale({ number_format: "decimal_comma" }), 1234.5), "1.234,5");
  assert.match(formatNumber(withLocale({ number_format: "quote_decimal" }), 1234.5), /^1['’]234\.5$/);
  assert.equal(formatNumber(withLocale({ number_format: "none" }), 1234.5), "1234.5");
});

test("a missing number is a dash", () => {
  assert.equal(formatNumber(PROFILE, null), "–");
});

test("a number from a wrong server is a dash", () => {
  assert.equal(formatNumber(PROFILE, /** @type {any} */ ("<b>")), "–");
});

test("a share is percent", () => {
  assert.equal(formatShare(PROFILE, 0.256), "26%");
});

test("the cost of a turn keeps its digits", () => {
  assert.equal(formatMoney(PROFILE, 0.0012), "$0.0012");
  assert.equal(formatMoney(PROFILE, 12.3456), "$12.35");
});

test("amounts of money in one column have the same number of digits", () => {
  const digits = chooseMoneyDigits([0.014, null, 0.0191, 2, 0]);
  const column = [0.014, 0.0191, 2, 0].map((value) => formatMoney(PROFILE, value, "USD", digits));
  assert.deepEqual(column, ["$0.0140", "$0.0191", "$2.0000", "$0.0000"]);
});

test("amounts of at least one have two digits in a column", () => {
  assert.equal(chooseMoneyDigits([1, 12.3456, 0, null]), 2);
});

test("a duration has its two largest units", () => {
  assert.equal(formatDuration(PROFILE, 0.0204), "21 ms");
  assert.equal(formatDuration(PROFILE, 1.94), "1.9 sec");
  assert.equal(formatDuration(PROFILE, 125), "2 min 5 sec");
  assert.equal(formatDuration(PROFILE, 3 * 86400 + 3600 + 5), "3 days 1 hr");
});

test("a unit is in the language of the user, whatever the format of numbers", () => {
  assert.equal(formatDuration(withLocale({ number_format: "decimal_comma" }), 1.94), "1,9 sec");
  assert.equal(formatDays(withLocale({ number_format: "space_comma" }), 1), "1 day");
});

test("a duration of whole hours has no minutes", () => {
  assert.equal(formatDuration(PROFILE, 7200), "2 hr");
});

test("a size has the unit that leaves at least one", () => {
  assert.equal(formatBytes(PROFILE, 999), "999 byte");
  assert.equal(formatBytes(PROFILE, 1_250_000), "1.3 MB");
});

test("a time is in the time zone of the server if the profile says so", () => {
  const profile = { ...withLocale({ time_zone: "server", time_format: "24" }), config: { time_zone: "Asia/Tokyo" } };
  assert.match(formatTime(profile, TIME), /Feb 1, 2026, 03:05/);
});

test("a day is the same in every time zone", () => {
  const profile = { ...withLocale({ time_zone: "server" }), config: { time_zone: "America/Los_Angeles" } };
  assert.equal(formatDay(profile, "2026-11-27"), "Nov 27, 2026");
});

test("what is no time is a dash", () => {
  assert.equal(formatTime(PROFILE, "soon"), "–");
});
