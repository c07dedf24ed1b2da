"""Tests for finding facts by inflected words and by parts of compounds, in the words of people."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.memory.turn.forgetting import forget_everything, forget_fact
from custom_components.windowed_conversation.memory.turn.remember_requests import ReplyKey, remember_statement
from custom_components.windowed_conversation.memory.turn.speaker import Speaker

# The language, a fact, and the subject of a request to forget it.
SUBJECTS = [
    ("pl", "hasło do wifi to kotek", "haśle do wifi"),
    ("pl", "hasło do wifi to kotek", "haśle"),
    ("pl", "kod do garażu to 4711", "kodzie do garażu"),
    ("pl", "sprzątaczka przychodzi we wtorek", "sprzątaczce"),
    ("de", "der Code für die Garage ist 4711", "den Garagencode"),
    ("nl", "de code van de garage is 4711", "de garagecode"),
    ("sv", "koden till garaget är 4711", "garagekoden"),
    ("da", "koden til garagen er 4711", "garagekoden"),
    ("de", "der Garagencode ist 4711", "den Code für die Garage"),
    ("de", "das WLAN-Passwort ist Kätzchen", "das Passwort vom WLAN"),
    ("de", "die Putzfrau kommt am Dienstag", "die Putzfrauen"),
    ("de", "der Zahnarzttermin ist am Montag", "den Termin beim Zahnarzt"),
    ("de", "das Geburtstagsgeschenk ist ein Fahrrad", "das Geschenk zum Geburtstag"),
    ("nl", "de schoonmaakster komt op dinsdag", "de schoonmaaksters"),
    ("nl", "het wifi-wachtwoord is poesje", "het wachtwoord van de wifi"),
    ("nl", "de tandartsafspraak is op maandag", "de afspraak bij de tandarts"),
    ("sv", "städerskan kommer på tisdag", "städerskor"),
    ("sv", "wifilösenordet är kattunge", "lösenordet till wifi"),
    ("sv", "tandläkartiden är på måndag", "tandläkaren"),
    ("da", "rengøringsdamen kommer på tirsdag", "rengøringen"),
    ("da", "tandlægetiden er på mandag", "tandlægen"),
    ("nb", "koden til garasjen er 4711", "garasjekoden"),
    ("nb", "vaskehjelpen kommer på tirsdag", "vaskehjelp"),
    ("pl", "dentysta jest w poniedziałek", "dentyście"),
    ("pl", "szczepienie psa jest w maju", "szczepieniu psa"),
    ("pl", "alarm ma kod 1234", "kodzie alarmu"),
    ("pl", "babcia lubi herbatę", "herbacie babci"),
    ("pl", "prezent dla Ani to rower", "prezencie"),
    ("cs", "heslo k wifi je kotě", "hesle k wifi"),
    ("cs", "kód do garáže je 4711", "kódu do garáže"),
    ("cs", "uklízečka chodí v úterý", "uklízečce"),
    ("cs", "dárek pro Annu je kolo", "dárku"),
    ("uk", "пароль від вайфаю котик", "паролі від вайфаю"),
    ("uk", "прибиральниця приходить щовівторка", "прибиральницю"),
    ("uk", "код гаража 4711", "коді гаража"),
    ("en", "the gardener comes on Monday", "gardening"),
    ("en", "the babysitter is called Kim", "the babysitting"),
    ("en", "the neighbours have the spare key", "the neighbour's key"),
]
# The first words of these requests are the fact's, as far as stems tell.
ORDINARY = [
    ("en", "the gardener comes on Monday", "the dentist"),
    ("de", "der Code für die Garage ist 4711", "den Geburtstag von Anna"),
    ("pl", "hasło do wifi to kotek", "urodzinach Ani"),
    ("nl", "de code van de garage is 4711", "de verjaardag van Kim"),
    ("cs", "heslo k wifi je kotě", "narozeninách Anny"),
    ("sv", "koden till garaget är 4711", "farmors födelsedag"),
]


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[dict[str, Memory]]:
    opened = {each: Memory(tmp_path / f"{each}.db", (each, "en")) for each in {language for language, *_ in SUBJECTS}}
    yield opened
    for memory in opened.values():
        memory.close()


def speaker(text: str, language: str) -> Speaker:
    return Speaker(text, language, "anna-id", "Anna", is_alone=True)


def test_no_fact_stays_of_which_memory_says_that_it_found_nothing(
    memories: dict[str, Memory], subtests: pytest.Subtests
) -> None:
    for language, fact, subject in SUBJECTS:
        with subtests.test(language=language, subject=subject):
            memory, by = memories[language], speaker(subject, language)
            remember_statement(memory, by, fact, fact)

            reply = forget_everything(memory, by, subject)
            answer = reply.on_yes(memory) if reply.on_yes else reply

            assert (answer.phrase, memory.get_facts("anna-id")) == (ReplyKey.FORGOTTEN, [])


def test_another_subject_finds_nothing(memories: dict[str, Memory], subtests: pytest.Subtests) -> None:
    for language, fact, subject in ORDINARY:
        with subtests.test(language=language, subject=subject):
            memory, by = memories[language], speaker(subject, language)
            remember_statement(memory, by, fact, fact)

            assert forget_everything(memory, by, subject).phrase is ReplyKey.NOT_FOUND


def test_a_fact_of_like_words_is_asked_about_before_it_is_forgotten(memories: dict[str, Memory]) -> None:
    memory, by = memories["de"], speaker("vergiss alles über den Garagencode", "de")
    remember_statement(memory, by, "der Code für die Garage ist 4711", "der Code für die Garage ist 4711")

    replies = [forget_everything(memory, by, "den Garagencode"), forget_fact(memory, by, "der Garagencode 4711 ist")]

    assert [(each.phrase, each.forgotten_rows) for each in replies] == [(ReplyKey.ASK_IF_MEANT, None)] * 2
    assert [fact.text for fact in memory.get_facts("anna-id")] == ["der Code für die Garage ist 4711"]


def test_several_facts_of_like_words_are_only_named(memories: dict[str, Memory]) -> None:
    memory, by = memories["pl"], speaker("zapomnij o haśle", "pl")
    for fact in ("hasło do wifi to kotek", "hasło do komputera to piesek"):
        remember_statement(memory, by, fact, fact)

    reply = forget_everything(memory, by, "haśle")

    assert (reply.phrase, len(reply.fact_texts), reply.on_yes) == (ReplyKey.SEVERAL_FOUND, 2, None)
