"""Tests for the entities, areas and kinds that a sentence names."""

import pytest

from custom_components.windowed_conversation.home.core.home import Home, KindNames
from custom_components.windowed_conversation.home.core.state_text import EntityState

NAMES = {
    "light.kitchen": ("Kitchen ceiling light", "Kitchen"),
    "sensor.kitchen": ("Kitchen temperature", "Kitchen"),
    "sensor.bed": ("Temperature", "Bedroom"),
    "sensor.bath": ("Temperature", "Bathroom"),
    "cover.garage": ("Garage door", "Garage"),
    "light.hall": ("Flurlicht", "Großer Flur"),
}


@pytest.fixture
def home() -> Home:
    made = Home(names_by_area={each: (each,) for _, each in NAMES.values()})
    made.names_by_area = {**made.names_by_area, "Attic": ("Attic", "loft"), "Yard": ("Yard",)}
    for key, (name, area) in NAMES.items():
        put(made, key, area, name)
    put(made, "lock.front", "Hall", "Front door", "entrance")
    return made


def put(home: Home, key: str, area: str, *names: str) -> None:
    home.entities[key] = EntityState(area, names[0], "on", names=names)


@pytest.mark.parametrize(
    ("said", "entities", "areas"),
    [
        ("is the garage door open?", {"cover.garage"}, {"Garage"}),
        ("is the door of the garage open?", {"cover.garage"}, {"Garage"}),
        ("are the KITCHEN ceiling lights on?", {"light.kitchen"}, {"Kitchen"}),
        ("what is the temperature in the kitchen?", {"sensor.kitchen", "sensor.bed", "sensor.bath"}, {"Kitchen"}),
        ("what is the temperature in the bedroom?", {"sensor.bed"}, {"Bedroom"}),
        ("brennen die Flurlichter im großen Flur?", {"light.hall"}, {"Großer Flur"}),
        ("is the entrance locked?", {"lock.front"}, set()),
        ("how is it in the loft?", set(), {"Attic"}),
        ("is the door open?", set(), set()),
        ("what is the weather like?", set(), set()),
        ("", set(), set()),
    ],
)
def test_sentence_names_entities_and_areas(home: Home, said: str, entities: set[str], areas: set[str]) -> None:
    named = home.find_mentions(said)
    assert (set(named.entities), set(named.areas)) == (entities, areas)


def test_entity_in_another_area_is_found_there(home: Home) -> None:
    put(home, "sensor.bed", "Attic", "Temperature")
    assert home.find_mentions("what is the temperature in the attic?").entities == ("sensor.bed",)


def test_long_sentence_is_read_only_at_its_beginning(home: Home) -> None:
    assert not home.find_mentions("well " * 60 + "is the garage door open?").entities


@pytest.mark.parametrize(
    ("language", "name", "said"),
    [
        ("en", "Window", "which windows are open?"),
        ("de", "Fenster", "welche Fenster sind offen?"),
        ("de", "Tür", "sind alle Türen zu?"),
        ("fr", "Fenêtre", "quelles fenêtres sont ouvertes ?"),
        ("es", "Ventana", "¿qué ventanas están abiertas?"),
        ("it", "Finestra", "quali finestre sono aperte?"),
        ("nl", "Raam", "is er een raam open?"),
        ("pl", "Okno", "które okna są otwarte?"),
        ("sv", "Fönster", "vilka fönster är öppna?"),
        ("da", "Vindue", "hvilke vinduer er åbne?"),
        ("pt", "Janela", "que janelas estão abertas?"),
    ],
)
def test_sentence_names_a_kind_in_any_number(language: str, name: str, said: str) -> None:
    kinds = KindNames((language, "en"), [("window", name), ("garage door", "Garage door")])

    assert kinds.find_kinds(said) == kinds.find_kinds(name) == {"window"}
    assert kinds.find_kinds("hello") == frozenset()
