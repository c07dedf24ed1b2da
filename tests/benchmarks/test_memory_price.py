"""Tests for the cost of memory in the prompt, with a shortened week."""

from dataclasses import replace

import pytest

from benchmarks.memory_price import Bill, price, week


def test_what_a_request_begins_with_as_the_last_one_of_its_window_is_cached_at_a_tenth():
    bill = Bill()
    bill.add("anna", "a" * 40)
    bill.add("ben", "a" * 40)
    bill.add("anna", "a" * 40 + "b" * 40)
    assert (bill.requests, bill.tokens, bill.cached) == (3, 40, 10)
    assert bill.cost == pytest.approx(30 + 0.1 * 10)


def test_memory_costs_a_fraction_of_what_it_costs_in_each_turns_system_prompt(tmp_path):
    said = list(week(days=1))
    off, on, others = (price(way, said, tmp_path) for way in ("off", "on", "others"))
    assert off.requests == on.requests == others.requests > len(said)
    assert off.cost < on.cost < 0.5 * others.cost


def test_nothing_but_a_new_fact_makes_the_cache_miss(tmp_path):
    said = [replace(turn, told=None) for turn in week(days=1)]
    off, on = (price(way, said, tmp_path) for way in ("off", "on"))
    assert on.hit > off.hit - 0.04
