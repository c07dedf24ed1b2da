"""Tests for the cost of memory in the prompt, with a shortened week."""

from dataclasses import replace

import pytest

from benchmarks.memory_price import WeekBill, calculate_bill, iter_week


def test_what_a_request_begins_with_as_the_last_one_of_its_window_is_cached_at_a_tenth():
    bill = WeekBill()
    bill.add_request("anna", "a" * 40)
    bill.add_request("ben", "a" * 40)
    bill.add_request("anna", "a" * 40 + "b" * 40)
    assert (bill.request_count, bill.token_count, bill.cached_tokens) == (3, 40, 10)
    assert bill.price_tokens == pytest.approx(30 + 0.1 * 10)


def test_memory_costs_a_fraction_of_what_it_costs_in_each_turns_system_prompt(tmp_path):
    said = list(iter_week(days=1))
    off, on, others = (calculate_bill(way, said, tmp_path) for way in ("off", "on", "others"))
    assert off.request_count == on.request_count == others.request_count > len(said)
    assert off.price_tokens < on.price_tokens < 0.5 * others.price_tokens


def test_nothing_but_a_new_fact_makes_the_cache_miss(tmp_path):
    said = [replace(turn, told=None) for turn in iter_week(days=1)]
    off, on = (calculate_bill(way, said, tmp_path) for way in ("off", "on"))
    assert on.cached_share > off.cached_share - 0.04
