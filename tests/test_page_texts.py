"""Tests that the page has a text for all that it says."""

import re

import pytest

from custom_components.windowed_conversation.turn.routing import REASON_BY_ERROR_TYPE, RouteReason

from .repository_files import PACKAGE, TEXTS, flat

PAGE_TEXTS = dict(flat(TEXTS["config_panel"]))
SCRIPTS = sorted((PACKAGE / "frontend").glob("*.js"))
KEY = re.compile(r'"([a-z]+\.[a-z_]+)"')
FAILURES = set(REASON_BY_ERROR_TYPE.values())


def test_every_text_that_a_script_names_exists(subtests: pytest.Subtests) -> None:
    for script in SCRIPTS:
        with subtests.test(script=script.name):
            groups = tuple(f"{group}." for group in TEXTS["config_panel"])
            keys = {key for key in KEY.findall(script.read_text()) if key.startswith(groups)}

            assert keys - PAGE_TEXTS.keys() == set()


def test_every_reason_for_a_route_that_is_no_failure_has_words() -> None:
    assert {reason.value for reason in RouteReason if reason not in FAILURES} <= TEXTS["config_panel"]["reasons"].keys()
