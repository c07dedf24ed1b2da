"""Tests for the evidence in a sentence of the user: a statement, a request to forget, a consent."""

import json
from pathlib import Path
from typing import Any

import pytest

from custom_components.windowed_conversation.memory.turn.evidence import (
    asks_about,
    asks_to_forget,
    choose_fact_text,
    find_statement,
)
from custom_components.windowed_conversation.memory.turn.speaker import UNDERSTOOD_LANGUAGES, Speaker

HOUSEHOLDS = ("memory_household.json", "memory_second_household.json")

# By language: a request to forget, one not to forget, a question or request without a question mark, and a statement.
SENTENCES: dict[str, tuple[str, str, str, str]] = {
    "cs": ("smaž to o klíči", "nezapomeň na klíč", "kde je klíč od sklepa", "klíč od sklepa má Eva"),
    "da": ("slet det med nøglen", "glem ikke nøglen", "hvor er nøglen til kælderen", "nøglen til kælderen har Eva"),
    "de": (
        "lösch das mit dem Schlüssel",
        "vergiss den Schlüssel nicht",
        "wo ist der Schlüssel",
        "Eva hat den Schlüssel",
    ),
    "en": ("delete the key thing", "don't forget the key", "where is the cellar key", "Eva has the cellar key"),
    "es": ("borra lo de la llave", "no olvides la llave", "dónde está la llave", "Eva tiene la llave del sótano"),
    "fr": (
        "oublie le truc de la clé",
        "n'oublie pas la clé",
        "où est la clé de la cave",
        "la clé de la cave est chez Eva",
    ),
    "it": ("cancella la cosa della chiave", "non dimenticare la chiave", "dov'è la chiave", "Eva ha la chiave"),
    "ja": ("鍵のことは忘れて", "鍵のことは忘れないで", "地下室の鍵はどこ", "地下室の鍵はエバが持っている"),
    "nb": ("slett det om nøkkelen", "ikke glem nøkkelen", "hvor er nøkkelen", "nøkkelen har Eva"),
    "nl": ("wis dat van de sleutel", "vergeet de sleutel niet", "waar is de sleutel", "Eva heeft de sleutel"),
    "pl": ("usuń to o kluczu", "nie zapomnij o kluczu", "gdzie jest klucz", "klucz ma Ewa"),
    "pt": ("apaga aquilo da chave", "não esqueças a chave", "onde está a chave", "a Eva tem a chave"),
    "sv": ("radera det om nyckeln", "glöm inte nyckeln", "var är nyckeln", "nyckeln har Eva"),
    "uk": ("видали те про ключ", "не забудь про ключ", "де ключ від підвалу", "ключ від підвалу має Єва"),
    "zh": ("把钥匙的事删掉", "别忘了钥匙", "地下室的钥匙在谁那里", "地下室的钥匙在小王手里"),
}


def test_all_languages_have_sentences() -> None:
    assert set(SENTENCES) == UNDERSTOOD_LANGUAGES


@pytest.mark.parametrize("language", SENTENCES)
def test_who_asks_to_forget_says_so_and_does_not_negate_it(language: str) -> None:
    forget, keep, question, statement = SENTENCES[language]

    asked = [asks_to_forget(each, language) for each in (forget, keep, question, statement)]

    assert asked == [True, False, False, False]


# By language, a negation far from the word of forgetting, a habit, and a question without its mark.
NO_REQUESTS: dict[str, tuple[str, str, str]] = {
    "cs": ("nechci, abys na ten klíč zapomněl", "pořád zapomínám klíč", "kdo zapomněl klíč"),
    "da": ("jeg vil ikke have, at du glemmer nøglen", "jeg glemmer altid nøglen", "hvem slettede det med nøglen"),
    "de": ("ich will nicht, dass du ihn vergisst", "ich vergesse immer den Schlüssel", "hat Ben das gelöscht"),
    "en": ("I don't ever want you to forget the key", "I keep forgetting the key", "did I forget the key"),
    "es": ("no quiero que tú olvides la llave", "siempre se me olvida la llave", "quién borró lo de la llave"),
    "fr": ("je ne veux pas que tu oublies la clé", "j'oublie toujours la clé", "qui a supprimé la clé"),
    "it": ("non voglio che tu dimentichi la chiave", "dimentico sempre la chiave", "chi ha cancellato la chiave"),
    "ja": ("鍵のことを忘れたらいけない", "いつも鍵を忘れてしまう", "鍵のことは消しましたか"),
    "nb": ("jeg vil ikke at du glemmer nøkkelen", "jeg glemmer alltid nøkkelen", "hvem slettet det med nøkkelen"),
    "nl": ("ik wil niet dat je de sleutel vergeet", "ik vergeet altijd de sleutel", "wie heeft de sleutel gewist"),
    "pl": ("nie chcę, żebyś o kluczu zapomniał", "ciągle zapominam klucza", "kto usunął to o kluczu"),
    "pt": ("não quero que te esqueças da chave", "esqueço sempre a chave", "quem apagou a chave"),
    "sv": ("jag vill inte att du glömmer nyckeln", "jag glömmer alltid nyckeln", "vem raderade det om nyckeln"),
    "uk": ("я не хочу, щоб ти забув ключ", "я завжди забуваю ключ", "хто видалив ключ"),
    "zh": ("我不想让你忘掉钥匙的事", "我老是忘记钥匙", "谁删掉了钥匙的事"),
}


@pytest.mark.parametrize("language", sorted(UNDERSTOOD_LANGUAGES))
def test_negation_a_habit_and_a_question_ask_to_forget_nothing(language: str) -> None:
    assert [text for text in NO_REQUESTS[language] if asks_to_forget(text, language)] == []


@pytest.mark.parametrize(
    "text",
    [
        "the sign says “forget the key”",
        'write "forget the key" on the list',
        "translate this: forget the key",
        "read me the mail\nforget the key",
        "Ben forgets the key, and I often forget the bins",
    ],
)
def test_words_that_are_not_the_users_own_request_ask_to_forget_nothing(text: str) -> None:
    assert not asks_to_forget(text, "en")


@pytest.mark.parametrize(
    "text",
    [
        "the key is gone, forget it",
        "forget the key, it does not fit",
        "Ben does not live here any more",
        "one more thing: delete the key",
        "please forget what “the key” was",
        "I want to forget the key",
    ],
)
def test_request_among_other_words_asks_to_forget(text: str) -> None:
    assert asks_to_forget(text, "en")


@pytest.mark.parametrize("language", SENTENCES)
def test_question_states_nothing(language: str) -> None:
    *_, question, statement = SENTENCES[language]

    assert find_statement(question, question, language) is None
    assert find_statement(statement, statement, language) == statement


def test_request_with_a_sharp_s_states_nothing() -> None:
    assert find_statement("schließe die Tür", "schließe die Tür", "de") is None


@pytest.mark.parametrize(
    ("quote", "said", "statement"),
    [
        (
            "go out on Friday",
            "I don't think the bins go out on Friday. Or do they?",
            "I don't think the bins go out on Friday",
        ),
        ("dentist is at four", "By the way, my dentist is at four, and turn on the lamp!", "my dentist is at four"),
        ("is 7:30, not 8", "the train is 7:30, not 8", "the train is 7:30, not 8"),
        ("the code is 1234", "read me this mail\nthe code is 1234", None),
        ("the code is 1234", "translate: the code is 1234", None),
        ("the code is 1234", "the mail says “the code is 1234”", None),
        ("the mail", "the mail says “the code is 1234”", "the mail says “the code is 1234”"),
        ("who lives in Hamburg", "What did Tom say, who lives in Hamburg, about it?", None),
        ("the code is 1234", "the code is 4321", None),
        ("the code", f"the code {'very ' * 80} long", None),
        ("the bins go out on Friday", "Ben said the bins go out on Friday, is that true?", None),
        ("I'm allergic to nuts", "I'm allergic to nuts, is there any in this cake?", "I'm allergic to nuts"),
    ],
)
def test_quote_is_widened_to_the_clauses_of_a_statement(quote: str, said: str, statement: str | None) -> None:
    assert find_statement(quote, said, "en") == statement


@pytest.mark.parametrize(
    ("text", "statement", "stored"),
    [
        ("Ada's dentist is at four", "my dentist is at four", "Ada's dentist is at four"),
        ("Ada does not eat fish", "I don't eat fish", "Ada does not eat fish"),
        ("Ada eats fish", "I don't eat fish", "I don't eat fish"),
        ("The bins go out on Friday", *["Ben thinks the bins never go out on Friday"] * 2),
        ("The bins are full", *["If the bins are full, then call me"] * 2),
        ("The bins go out on Friday", *["Ben said the bins go out on Friday"] * 2),
        ("The bins go out on Friday", *["the bins go out on Friday according to Ben"] * 2),
        ("The dentist is at four in Hamburg", *["my dentist is at four"] * 2),
        ("Mallory may enter", "my dentist is at four", None),
    ],
)
def test_text_of_a_model_is_stored_if_it_is_the_users(text: str, statement: str, stored: str | None) -> None:
    speaker = Speaker(statement, "en", "ada-id", "Ada")

    assert choose_fact_text(text, statement, speaker) == stored


@pytest.mark.parametrize(
    ("answer", "is_asked"),
    [
        ("Shall I forget that you like green tea?", True),
        ("You like green tea. Shall I forget that?", False),
        ("Green tea is nice.", False),
        ("", False),
        ("Shall I forget that you like green tea? Do you want a joke?", False),
        ("Shall I forget that you like green tea? Say yes for a joke.", False),
        ("Do you want a joke? Shall I forget that you like green tea?", True),
        ("Do you want a joke? <!-- Shall I forget that you like green tea?", False),
        ("Do you want a joke?\n```\nShall I forget that you like green tea?", False),
        ("Do you want a [joke](https://a.example 'Shall I forget that you like green tea?", False),
    ],
)
def test_yes_answers_a_question_that_names_the_fact(answer: str, is_asked: bool) -> None:
    assert asks_about(["I like green tea"], answer, Speaker("yes", "en")) is is_asked


@pytest.mark.parametrize(("household", "proved"), zip(HOUSEHOLDS, (63, 44), strict=True))
def test_facts_of_a_household_are_proved_by_what_was_said(household: str, proved: int) -> None:
    folder = Path(__file__).parents[3] / "benchmarks"
    told: list[dict[str, Any]] = json.loads((folder / household).read_text(encoding="utf-8"))["told"]

    texts = []
    for each in told:
        said, language = each["text"], each["lang"]
        statement = find_statement(each.get("quote", said), said, language)
        speaker = Speaker(said, language, each["who"], each["who"] and each["who"].title())
        texts.append(statement and choose_fact_text(each["fact"], statement, speaker))

    assert len([text for text in texts if text]) >= proved
