"""Tests that the examples of data for the selectors of tasks are valid and invalid for Home Assistant."""

import probatio
import pytest

from .selectors_of_tasks import SELECTORS, make_case_fields, make_json_schema, make_structure


# Templates are only validated by a running Home Assistant.
def test_valid_data_is_accepted(subtests: pytest.Subtests) -> None:
    for name in [name for name in SELECTORS if name != "template"]:
        with subtests.test(name=name):
            structure = make_structure(make_case_fields(SELECTORS[name]))

            assert structure({"value": SELECTORS[name].valid, "note": "a van"})["note"] == "a van"


def test_invalid_data_is_refused(subtests: pytest.Subtests) -> None:
    for name in [name for name, case in SELECTORS.items() if case.invalid is not None]:
        with subtests.test(name=name):
            structure = make_structure(make_case_fields(SELECTORS[name]))

            with pytest.raises(probatio.Invalid):
                structure({"value": SELECTORS[name].invalid, "note": "a van"})


def test_schema_of_a_structure_is_one_of_an_object(subtests: pytest.Subtests) -> None:
    for name in SELECTORS:
        with subtests.test(name=name):
            schema = make_json_schema(make_case_fields(SELECTORS[name]))

            assert schema["type"] == "object"
            assert schema["required"] == ["note"]
            assert schema["additionalProperties"] is False
