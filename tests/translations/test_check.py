"""Tests for the checker of translations: each kind of mistake is found, and none in a right text."""

import pytest

from .check import check_language, find_quoted_labels, find_terms
from .texts import ENGLISH, Exceptions, Language

GERMAN = {
    "config.error.key_missing": "Gib einen API-Schlüssel ein.",
    "config.step.account.data.api_key": "API-Schlüssel",
    "config.step.account.description": (
        "Erstelle einen API-Schlüssel auf [der Seite für API-Schlüssel]({key_page}) von {provider}."
        " Er wird geprüft, indem die Modelle des Kontos aufgelistet werden."
    ),
    "config_panel.why.omitted": "Nicht gezeigte ältere Nachrichten: {count}.",
    "config_panel.panel.agent": "Agent",
    "selector.record.options.full": "Vollständiger Inhalt",
    "config_subentries.ai_task_data.step.task.data_description.record": (
        "Zur Fehlersuche. *Vollständiger Inhalt* enthält 7 Tage lang alles Gesagte und Gesendete."
        " [Datenschutz]({privacy_page})"
    ),
    "common.memory_facts_one": "{count} Eintrag",
    "common.memory_facts_few": "{count} Einträge",
    "common.memory_facts_other": "{count} Einträge",
}


def find(
    texts: dict[str, str], *, same: frozenset[str] = frozenset({"Agent"}), code: str = "de", **reasons: dict
) -> list:
    """Return the checks that object to texts in a language which is not complete."""
    language = Language(code, texts, Exceptions(same, frozenset(), reasons.get("reasons", {})))
    return [finding.check for finding in check_language(language) if finding.check not in {"missing", "plural"}]


def test_right_translation_has_no_findings() -> None:
    assert find(GERMAN) == []


@pytest.mark.parametrize(
    ("key", "text", "check"),
    [
        ("config.error.key_missing", " Gib einen API-Schlüssel ein.", "blank"),
        ("config.error.key_missing", "Gib einen API-Schlüssel ein", "end"),
        ("config.error.key_missing", "Gib einen <b>API-Schlüssel</b> ein.", "html"),
        ("config.error.key_missing", "Gib einen Schlüssel ein.", "term:API key"),
        ("config.error.key_missing", "Geben Sie einen API-Schlüssel ein.", "address"),
        ("config.error.key_missing", "Enter an API key.", "same"),
        ("config.error.key_missing", "Gib einen {name} API-Schlüssel ein.", "placeholders"),
        ("config.error.key_missing", "Gib einen {API-Schlüssel ein.", "braces"),
        ("config.error.key_missing", "Gib einen *API-Schlüssel* ein.", "markup"),
        ("config.error.unheard_of", "Davon weiß niemand.", "unknown"),
        ("config.step.account.data.api_key", "Der API-Schlüssel deines Kontos", "length"),
        ("config_panel.why.omitted", "{count} ältere Nachrichten sind nicht gezeigt.", "number"),
        (
            "config_panel.panel.closed_account",
            "Konto '{title}': nicht geladen, also fehlen seine Agenten.",
            "apostrophe",
        ),
        ("selector.record.options.full", "Ganzer Inhalt", "label:Full content"),
    ],
)
def test_mistake_is_found(key: str, text: str, check: str) -> None:
    assert check in find(GERMAN | {key: text})


def test_plural_message_is_found_because_home_assistant_cannot_parse_its_braces() -> None:
    text = "Nicht gezeigt: {count, plural, one {# ältere Nachricht} other {# ältere Nachrichten}}."

    assert "braces" in find(GERMAN | {"config_panel.why.omitted": text})


def test_language_without_a_form_for_two_has_no_other_text_there() -> None:
    language = Language(
        "de", GERMAN | {"common.memory_facts_few": "{count} Eintraege"}, Exceptions(frozenset(), frozenset(), {})
    )

    assert ("common.memory_facts_few", "plural") in {(found.key, found.check) for found in check_language(language)}


def test_language_with_a_form_for_two_has_another_text_there() -> None:
    language = Language("uk", GERMAN, Exceptions(frozenset(), frozenset(), {}))

    assert ("common.memory_facts_few", "plural") in {(found.key, found.check) for found in check_language(language)}


def test_number_that_is_never_one_may_stand_before_a_word_except_where_all_numbers_matter() -> None:
    text = {
        "exceptions.rate_limited_for_hours.message": "Der Server des Modells hat Anfragen. In {hours} Stunden gern."
    }

    assert "number" not in find(text)
    assert "number" in find(text, code="uk")


def test_exception_with_a_reason_allows_a_finding() -> None:
    wrong = GERMAN | {"config.error.key_missing": "Gib einen Schlüssel ein."}

    assert find(wrong, reasons={"config.error.*": {"term:API key": "the field above says it"}}) == []


def test_exception_that_is_not_needed_is_found() -> None:
    assert find(GERMAN, reasons={"config.error.*": {"term:API key": "outdated"}}) == ["term:API key"]


def test_chinese_characters_are_as_wide_as_two() -> None:
    assert "length" in find({"config.step.account.data.api_key": "令" * 12}, code="zh-Hans")
    assert "length" not in find({"config.step.account.data.api_key": "令" * 10}, code="zh-Hans")


def test_term_within_a_longer_one_is_not_found() -> None:
    assert list(find_terms("Choose a conversation agent in Home Assistant.")) == [("words", "conversation agent")]


def test_term_is_found_in_the_plural() -> None:
    assert list(find_terms("Its summaries and entities.")) == [("words", "summary"), ("words", "entity")]


def test_label_is_quoted_in_italics_or_with_a_capital_in_a_sentence() -> None:
    key = "exceptions.memory_everyone_by_time.message"

    assert find_quoted_labels(ENGLISH[key]) == {"Everyone", "Everything"}
    assert find_quoted_labels("Select *Delete now* here.") == {"Delete now"}
