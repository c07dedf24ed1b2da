"""Tests for `fill_form`: it submits a Home Assistant form as a user does who changes only some fields."""

from demo.setup_agent import ModelAccess, fill_form

_FORM = {
    "data_schema": [
        {"name": "name", "required": True, "description": {"suggested_value": "Ada"}},
        {"name": "model", "required": True, "default": "small"},
        {"name": "prompt", "optional": True},
        {
            "name": "limits",
            "type": "expandable",
            "schema": [
                {"name": "turn_timeout", "default": 60},
                {"name": "rounds", "default": 10, "description": {"suggested_value": 3}},
            ],
        },
    ]
}


def test_what_is_not_changed_is_what_the_form_shows():
    assert fill_form(_FORM, {}) == {"name": "Ada", "model": "small", "limits": {"turn_timeout": 60, "rounds": 3}}


def test_a_changed_field_is_submitted():
    assert fill_form(_FORM, {"prompt": "Be brief."})["prompt"] == "Be brief."


def test_a_changed_field_of_a_section_leaves_the_others_of_it():
    assert fill_form(_FORM, {"turn_timeout": 300})["limits"] == {"turn_timeout": 300, "rounds": 3}


def test_another_key_is_another_choice_of_model_and_is_not_said():
    one, other = (ModelAccess(url="http://127.0.0.1/v1", model="m", api_key=key) for key in ("sk-one", "sk-two"))
    assert one.fingerprint() != other.fingerprint()
    assert "sk-one" not in one.fingerprint()
