"""Tests for the evidence that learning adds to requests, with one half of the smaller household."""

import pytest

from benchmarks.learned import ARM_BY_NAME, EvidenceCounts, measure_arm

_NAME, _DAYS, _HALVES = "memory_second_household", 90, (1,)


@pytest.fixture(scope="module")
def off() -> EvidenceCounts:
    """Return the counts of a home that learns nothing."""
    return measure_arm(_NAME, ARM_BY_NAME["off"], _DAYS, _HALVES)


@pytest.fixture(scope="module")
def facts() -> EvidenceCounts:
    """Return the counts of a home that learns facts and no summaries."""
    return measure_arm(_NAME, ARM_BY_NAME["facts only"], _DAYS, _HALVES)


def test_what_was_only_mentioned_is_evidence_after_its_turns_expired_if_it_was_learned(
    off: EvidenceCounts, facts: EvidenceCounts
) -> None:
    assert facts.question_count == off.question_count
    assert facts.evidence_share >= off.evidence_share + 0.05


def test_learned_facts_do_not_lengthen_the_recalled_lines(off: EvidenceCounts, facts: EvidenceCounts) -> None:
    assert facts.sentence_count == off.sentence_count
    assert facts.line_tokens <= off.line_tokens


def test_nobody_gets_what_somebody_else_said_of_themselves(facts: EvidenceCounts) -> None:
    assert facts.leaked_count == 0


def test_a_home_that_learns_nothing_proves_nothing(off: EvidenceCounts, facts: EvidenceCounts) -> None:
    assert (off.mentioned_count, off.proved_count) == (22, 0)
    assert 0 < facts.proved_count <= facts.mentioned_count
