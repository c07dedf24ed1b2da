"""Tests for the errors that a satellite speaks, in all languages: nobody beside it can change an account."""

import json
import re

from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.bridge.errors import (
    _KEY_BY_CLASS,
    SPOKEN_LANGUAGES,
    ErrorPresentation,
    async_get_heard_phrase,
    describe_error,
)
from custom_components.windowed_conversation.providers.errors import RateLimited, Redirected
from tests.repository_files import PACKAGE

TEXTS = {
    language: json.loads((PACKAGE / "translations" / f"{language}.json").read_text("utf-8"))
    for language in SPOKEN_LANGUAGES
}
FAILURES = [
    *(ErrorPresentation(key) for key in _KEY_BY_CLASS.values() if key not in ("redirected", "local_answer_failed")),
    *(describe_error(RateLimited("", seconds)) for seconds in (None, 7, 119, 700, 70_000, 1_999_999)),
    describe_error(Redirected("https://models.example.com:8443")),
    describe_error(ValueError("secret")),
]

# The beginnings of words of administration, in any case. "Home Assistant" and "AI service" are none.
ADMINISTRATION = {
    "en": "model server account key url token setting api credit provider agent tool instruction address length",
    "cs": "model server účet účtu klíč url token api kredit poskytovatel agent nástroj pokyn adres délk",
    "da": "model server konto nøgle url token indstilling api midler udbyder agent værktøj instruks adresse længde",
    "de": "modell server konto schlüssel url token einstellung api guthaben anbieter agent werkzeug anweisung adresse",
    "es": "modelo servidor cuenta clave url token ajustes api saldo proveedor agente herramienta instrucci dirección",
    "fr": "modèle serveur compte clé url token paramètre api crédit fournisseur agent outil instruction longueur",
    "it": "modello server account chiave url token impostazion api credito fornitore agente strument istruzion",
    "ja": "モデル サーバー アカウント キー url トークン api 残高 プロバイダー エージェント ツール 指示 アドレス 長さ",
    "nb": "modell server konto nøkkel url token innstilling api penger leverandør agent verktøy instruks lengde",
    "nl": "model server account sleutel url token instellingen api tegoed aanbieder agent hulpmiddel instructie adres",
    "pl": "model serwer kont klucz url token api środk dostawc agent narzędzi instrukcj adres długoś",
    "pt": "modelo servidor conta chave url token definições api saldo fornecedor agente ferramenta instruç endereço",
    "pt-BR": "modelo servidor conta chave url token configuraç api crédito provedor agente ferramenta instruç endereço",
    "sv": "modell server konto nyckel url token inställningar api saldo leverantör agent verktyg instruktion adress",
    "uk": "модел сервер облік ключ url токен api кошт постачальник агент інструмент інструкц адрес довжин",
    "zh-Hans": "模型 服务器 账户 密钥 url 令牌 api 余额 提供商 代理 工具 指令 地址 长度",
}


@pytest.fixture(autouse=True)
def _integration(enable_custom_integrations: None) -> None:
    """Let Home Assistant find the translations."""


def test_every_language_has_words_of_administration() -> None:
    assert ADMINISTRATION.keys() == set(SPOKEN_LANGUAGES)


async def say(
    hass: HomeAssistant, language: str, failure: ErrorPresentation, *, has_local_commands: bool = True
) -> str:
    return await async_get_heard_phrase(hass, language, failure, has_local_commands=has_local_commands)


async def test_heard_error_has_no_word_of_administration(hass: HomeAssistant, subtests: pytest.Subtests) -> None:
    for language, words in ADMINISTRATION.items():
        gap = "" if language in ("ja", "zh-Hans") else r"\b"
        pattern = re.compile("|".join(f"{gap}{re.escape(word)}" for word in words.split()), re.IGNORECASE)
        for failure in FAILURES:
            with subtests.test(language, failure=failure.key):
                assert pattern.findall(await say(hass, language, failure)) == []


async def test_words_of_administration_are_those_of_the_messages(subtests: pytest.Subtests) -> None:
    for language, words in ADMINISTRATION.items():
        message = TEXTS[language]["exceptions"]["auth_error"]["message"].casefold()
        with subtests.test(language):
            assert sum(word in message for word in words.split()) >= 3


async def test_heard_error_has_no_host_and_no_long_number(hass: HomeAssistant, subtests: pytest.Subtests) -> None:
    for language in SPOKEN_LANGUAGES:
        for failure in FAILURES:
            with subtests.test(language, failure=failure.key):
                phrase = await say(hass, language, failure)

                assert re.search(r"[a-z]\.[a-z]|://|[{}]", phrase, re.IGNORECASE) is None
                assert all(int(number) <= 99 for number in re.findall(r"\d+", phrase))


# The phrases in English, and the errors that have them.
PHRASES = {
    "Something went wrong. Please try again.": "bad_stream deadline_exceeded empty_answer unexpected",
    "I'm too busy right now. Please try again in a minute or two.": "rate_limited_for",
    "I'm too busy right now. Please try again later.": "rate_limited rate_limited_for_minutes rate_limited_for_hours",
    "I can't reach my AI service right now. Lights and timers still work.": "unavailable",
    "I'm not set up correctly. Please tell whoever looks after Home Assistant.": (
        "auth_error bad_request context_overflow model_not_found prompt_failed quota_error redirected tools_unavailable"
    ),
    "I can't help with that.": "refused",
    "That's as much as I can say at once.": "incomplete",
}


async def test_error_has_the_phrase_of_its_kind(hass: HomeAssistant, subtests: pytest.Subtests) -> None:
    for phrase, keys in PHRASES.items():
        for key in keys.split():
            with subtests.test(key):
                assert await say(hass, "en", ErrorPresentation(key)) == phrase


async def test_error_without_a_phrase_is_one_that_anybody_understands(hass: HomeAssistant) -> None:
    for_others = {"no_summary", "no_token_count", "invalid_data", "id_too_long"}
    plain = {"busy", "nothing_said", "unauthorized"}

    assert {each.key for each in FAILURES} - set(" ".join(PHRASES.values()).split()) == plain | for_others


async def test_lights_do_not_work_where_the_model_answers_everything(hass: HomeAssistant) -> None:
    failure = ErrorPresentation("unavailable")

    assert await say(hass, "en", failure, has_local_commands=False) == "I can't reach my AI service right now."
