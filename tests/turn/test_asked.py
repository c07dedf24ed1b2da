"""The entities, areas and kinds that a sentence names."""

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.turn.asked import KindWords, NameIndex

NAMES = {
    "light.kitchen": ("Kitchen ceiling light", "Kitchen"),
    "sensor.kitchen": ("Kitchen temperature", "Kitchen"),
    "sensor.bed": ("Temperature", "Bedroom"),
    "sensor.bath": ("Temperature", "Bathroom"),
    "cover.garage": ("Garage door", "Garage"),
    "light.hall": ("Flurlicht", "Großer Flur"),
}


@pytest.fixture
def names() -> NameIndex:
    index = NameIndex()
    for key, (name, area) in NAMES.items():
        index.put(key, (name,), area)
    index.put("lock.front", ("Front door", "entrance"), "Hall")
    index.put_areas({each: (each,) for _, each in NAMES.values()} | {"Attic": ("Attic", "loft"), "Yard": ("Yard",)})
    return index


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
def test_sentence_names_entities_and_areas(names: NameIndex, said: str, entities: set[str], areas: set[str]) -> None:
    asked = names.asked(said)
    assert (set(asked.entities), set(asked.areas)) == (entities, areas)


def test_new_name_replaces_the_old_one(names: NameIndex) -> None:
    names.put("cover.garage", ("Big gate", "Portal"), "Yard")
    assert not names.asked("is the garage door open?").entities
    assert names.asked("is the big gate in the yard open?").entities == ("cover.garage",)


def test_entity_that_is_gone_is_not_named(names: NameIndex) -> None:
    names.drop("cover.garage")
    asked = names.asked("is the garage door open?")
    assert not asked.entities


def test_entity_in_another_area_is_found_there(names: NameIndex) -> None:
    names.put("sensor.bed", ("Temperature",), "Attic")
    assert names.asked("what is the temperature in the attic?").entities == ("sensor.bed",)


def test_long_sentence_is_read_only_at_its_beginning(names: NameIndex) -> None:
    assert not names.asked("well " * 60 + "is the garage door open?").entities


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.text("ab xyzü-", max_size=12), st.sampled_from(["", "a b"]))))
def test_index_is_as_if_only_the_newest_names_had_been_put(puts: list[tuple[str, str, str]]) -> None:
    index, fresh = NameIndex(), NameIndex()
    for key, name, area in puts:
        index.put(key, (name, name[::-1]), area)
    for key, name, area in {put[0]: put for put in puts}.values():
        fresh.put(key, (name, name[::-1]), area)
    for _, name, area in puts:
        assert index.asked(f"{name} {area}") == fresh.asked(f"{name} {area}")


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
    kinds = KindWords((language, "en"), [("window", name), ("garage door", "Garage door")])

    assert kinds.named(said) == kinds.named(name) == {"window"}
    assert kinds.named("hello") == frozenset()
