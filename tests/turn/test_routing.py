"""Tests for the route of an input, and for words that a template captures. The tables serve as documentation."""

import pytest

from custom_components.windowed_conversation.memory.turn.speaker import (
    UNDERSTOOD_LANGUAGES,
    is_instruction,
    is_order,
    is_spoken_question,
)
from custom_components.windowed_conversation.turn.routing import (
    MAX_COMMAND_CHARS,
    Route,
    RouteDecision,
    RouteReason,
    RoutingMode,
    decide_first_route,
    expects_reply,
    has_no_required_word,
    have_same_words,
    is_echo,
    is_question,
    is_unlikely_name,
    is_word_cut,
)
from custom_components.windowed_conversation.window import Message, ToolCall

COMMAND = "turn on the light"
LONG_TEXT = "x" * (MAX_COMMAND_CHARS + 1)

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("routing", "text", "route", "reason"),
    [
        (RoutingMode.LOCAL_FIRST, COMMAND, Route.LOCAL, RouteReason.LOCAL_MATCH),
        (RoutingMode.LOCAL_FIRST, LONG_TEXT[1:], Route.LOCAL, RouteReason.LOCAL_MATCH),
        (RoutingMode.LOCAL_FIRST, LONG_TEXT, Route.MODEL, RouteReason.TOO_LONG),
        (RoutingMode.MODEL_ONLY, COMMAND, Route.MODEL, RouteReason.MODEL_ONLY),
        (RoutingMode.MODEL_ONLY, LONG_TEXT, Route.MODEL, RouteReason.MODEL_ONLY),
        (RoutingMode.LOCAL_ONLY, COMMAND, Route.LOCAL, RouteReason.LOCAL_ONLY),
        (RoutingMode.LOCAL_ONLY, LONG_TEXT, Route.LOCAL, RouteReason.LOCAL_ONLY),
    ],
)
def test_first_choice(routing: RoutingMode, text: str, route: Route, reason: RouteReason) -> None:
    assert decide_first_route(routing, text) == RouteDecision(route, reason)


@pytest.mark.parametrize(
    ("last", "asks"),
    [
        (Message.assistant("Which size would you like?", created=NOW - 5), True),
        (Message.assistant("Which size?  \n", created=NOW - 5), True),
        (Message.assistant("Ποιο μέγεθος;", created=NOW - 5), True),
        (Message.assistant("什么尺寸？", created=NOW - 5), True),
        (Message.assistant("Which size?", created=NOW - 300), True),
        (Message.assistant("Which size?", created=NOW - 301), False),
        (Message.assistant("Which size?", created=NOW), True),
        (Message.assistant("Which size?", created=NOW + 3600), False),
        (Message.assistant("Which size?"), False),
        (Message.assistant("Large? Done.", created=NOW - 5), False),
        (Message.assistant("", created=NOW - 5), False),
        (Message.assistant(tool_calls=(ToolCall("call_1", "a", {}),), created=NOW - 5), False),
        (Message.user("Which size?", created=NOW - 5), False),
        (Message.system("Which size?", created=NOW - 5), False),
        (Message.tool("call_1", "a", "Which size?", created=NOW - 5), False),
    ],
)
def test_agent_waits_for_an_answer_to_its_own_question(last: Message, asks: bool) -> None:
    assert expects_reply(last, NOW) is asks


ECHOES = (
    ("turned on the kitchen light", "Turned on the kitchen light.", True),
    ("shall I turn it off again", "It is still on. Shall I turn it off again?", True),
    ("It is still on, shall I turn it off again?", "It is still on. Shall I turn it off again?", True),
    ("厨房的灯已经打开了", "好的。厨房的灯已经打开了。", True),
    ("turn on the kitchen light", "Turned on the kitchen light.", False),
    ("turn on the kitchen light", "Shall I turn on the kitchen light?", False),
    ("turn on the kitchen light", "You can say: turn on the kitchen light.", False),
    ("it is still on", "It is still on. Shall I turn it off again?", False),
    ("kitchen light", "Which one? Kitchen light?", False),
    ("yes", "Yes?", False),
    ("5 degrees in the living room", "It is 21.5 degrees in the living room.", False),
    ("turned on the kitchen light and what now", "Turned on the kitchen light.", False),
    ("厨房的灯", "好的。厨房的灯。", False),
    ("", "", False),
)


def test_echo_has_the_words_of_the_last_whole_sentences() -> None:
    assert [is_echo(text, answer) for text, answer, _ in ECHOES] == [expected for *_, expected in ECHOES]


@pytest.mark.parametrize(
    ("item", "is_long"),
    [
        ("milk", False),
        ("oat milk", False),
        ("two red peppers", False),
        ("the usual for the weekend", True),
        ("milk, eggs", True),
        ("牛奶，鸡蛋", True),  # noqa: RUF001 - a Chinese comma
        ("Donaudampfschifffahrtsgesellschaft", True),
        ("", False),
    ],
)
def test_an_item_is_at_most_three_words(item: str, is_long: bool) -> None:
    assert is_unlikely_name(item) is is_long


ANNOUNCEMENTS = [
    ("who is at the door", "en", True),
    ("When the washing machine is done", "en-GB", True),
    ("dinner is ready", "en", False),
    ("whoever is hungry may come", "en", False),
    ("wenn die Waschmaschine fertig ist", "de", True),
    ("das Essen ist fertig", "de-CH", False),
    ("who is at the door", "xx", False),
    ("a che ora parte il treno", "it", True),
    ("a tavola", "it", False),
    ("dès que Ben est à la maison", "fr", True),
    ("på vilken tid går tåget", "sv", True),
    ("hvad tid toget går", "da", True),
    ("quando o filme começa", "pt-BR", True),
    ("v kolik hodin jede vlak", "cs", True),
    ("večeře je hotová", "cs", False),
    ("до котрої години відчинено", "uk", True),
    ("hvis det regner", "no", True),
    ("middagen er klar", "nb", False),
    ("火车几点开", "zh-cn", True),
    ("晚饭好了", "zh-Hans", False),
    ("電車はいつ来る", "ja", True),
    ("ごはんだよ", "ja", False),
    ("...", "en", False),
]


def test_an_announcement_that_begins_like_a_question_is_an_instruction(subtests: pytest.Subtests) -> None:
    for message, language, is_one in ANNOUNCEMENTS:
        with subtests.test(message=message, language=language):
            assert is_instruction(message, language) is is_one


SPOKEN_QUESTIONS = [
    ("is the light on", "en", True),
    ("tell me whether the light is on", "en-GB", True),
    ("at what time does the light go on", "en", True),
    ("turn on the light", "en", False),
    ("turn on the light once it is dark", "en", False),
    ("sind die Rollläden offen", "de", True),
    ("sag mir ob das Licht an ist", "de-CH", True),
    ("mach das Licht an", "de", False),
    ("есть свет", "xx", False),
    ("dis-moi si la lumière est allumée", "fr", True),
    ("dime si está encendida la luz", "es", True),
    ("accendi la luce", "it", False),
    ("er lyset tændt", "da", True),
    ("er lyset på", "no", True),
    ("czy światło jest włączone", "pl", True),
    ("está ligada a luz", "pt-BR", True),
    ("чи увімкнене світло", "uk", True),
    ("灯开着吗", "zh-cn", True),
    ("打开灯", "zh-Hans", False),
    ("電気はついていますか", "ja", True),
    ("電気をつけて", "ja", False),
    ("...", "en", False),
]


def test_question_without_a_question_mark_is_known_by_its_first_words(subtests: pytest.Subtests) -> None:
    for text, language, is_one in SPOKEN_QUESTIONS:
        with subtests.test(text=text, language=language):
            assert is_spoken_question(text, language) is is_one


# By language, an order, a request to be told something, a negation, and a condition.
ORDERS = {
    "cs": ("rozsviť světla", "řekni mi stav světel", "nezhasínej světla", "zhasni světla, až odejdu"),
    "da": ("tænd lyset i stuen", "fortæl mig om lyset i stuen", "tænd ikke lyset", "sluk lyset, når jeg går"),
    "de": ("mach die Lichter an", "sag mir den Zustand der Lichter", "mach kein Licht", "mach es an, außer am Sonntag"),
    "en": ("turn on the lights and tell me", "can you please tell me the state", "don't dim it", "close it at sunset"),
    "es": ("enciende las luces", "por favor dime el estado", "no enciendas la luz", "apágala cuando salga"),
    "fr": ("allume s'il te plaît", "peux-tu me dire l'état", "n'allume pas la lumière", "éteins-la quand je pars"),
    "it": ("accendi le luci", "vorrei sapere lo stato delle luci", "non accendere la luce", "chiudile al tramonto"),
    "ja": ("照明をつけて", "照明の状態を教えて", "照明をつけないで", "出かけたら照明を消して"),
    "nb": ("slå på lyset i stua", "vis meg lysene i stua", "ikke slå på lyset", "slå av lyset når jeg går"),
    "nl": ("doe de lampen aan", "ik wil graag weten hoe warm het is", "doe de lamp niet aan", "doe hem uit als ik ga"),
    "pl": ("włącz światła", "powiedz mi stan świateł", "nie włączaj światła", "wyłącz je, gdy wyjdę"),
    "pt": ("acende as luzes", "me diz o estado das luzes", "não acendas a luz", "apaga-a quando eu sair"),
    "sv": ("tänd lamporna i köket", "kolla lamporna i köket", "tänd inte lampan", "släck den när jag går"),
    "uk": ("увімкни світло", "скажи мені стан світла", "не вмикай світло", "вимкни його, коли я піду"),
    "zh": ("请打开灯", "请告诉我灯的状态", "不要开灯", "我走以后关灯"),
}


def test_text_is_an_order_unless_it_asks_or_is_negated_or_has_a_condition(subtests: pytest.Subtests) -> None:
    assert set(ORDERS) == UNDERSTOOD_LANGUAGES
    for language, texts in ORDERS.items():
        with subtests.test(language=language):
            assert [is_order(each, language) for each in texts] == [True, False, False, False]


@pytest.mark.parametrize(
    ("template", "bare"),
    [
        ("{name}", True),
        ("[<the>] {name}", True),
        ("[[the] [big] ]{name}", True),
        ("[the] {area} {name}", True),
        ("{name} on", False),
        ("<turn> on {name}", False),
        ("(turn|switch) on [the] {name}", False),
        ("", True),
    ],
)
def test_a_bare_template_has_no_word_that_must_be_said(template: str, bare: bool) -> None:
    assert has_no_required_word(template) is bare


@pytest.mark.parametrize(("text", "asks"), [("kitchen light?", True), ("厨房灯？", True), ("kitchen light.", False)])
def test_a_question_mark_makes_a_question(text: str, asks: bool) -> None:
    assert is_question(text) is asks


@pytest.mark.parametrize(("one", "other", "same"), [("milk, eggs", "milk eggs", True), ("nna ", "Anna", False)])
def test_words_are_the_same_whatever_stands_between_them(one: str, other: str, same: bool) -> None:
    assert have_same_words(one, other) is same


@pytest.mark.parametrize(
    ("text", "span", "cut"),
    [
        ("añade pan a la lista", (6, 13), True),
        ("añade pan a la lista", (6, 9), False),
        ("add milk", (4, 8), False),
        ("把牛奶加到清单", (1, 3), False),
    ],
)
def test_a_span_that_ends_between_two_letters_cuts_a_word(text: str, span: tuple[int, int], cut: bool) -> None:
    assert is_word_cut(text, span) is cut
