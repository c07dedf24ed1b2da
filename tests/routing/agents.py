"""Sets up accounts of this integration with Home Assistant's own setup; without a URL they have no model."""

from typing import Any

from homeassistant.config_entries import SOURCE_USER, ConfigEntry, ConfigSubentryData
from homeassistant.const import CONF_API_KEY, CONF_LLM_HASS_API, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er

from custom_components.windowed_conversation.config_flow import WindowedConversationConfigFlow
from custom_components.windowed_conversation.const import (
    CONF_ASK_BEFORE_OPENING,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_NONE,
    PROVIDER_OPENAI_CHAT,
    SUBENTRY_CONVERSATION,
    AskMode,
)


async def add_agent(hass: HomeAssistant, url: str | None, **options: Any) -> str:
    """Add an agent with these options and the Assist API, and return its entity id.

    `account` and `account_options` are the data and the options of its account, by default one of a compatible server.
    It asks nobody before it opens something, because its sentences are judged by what they change.
    """
    given = options.pop("account", {CONF_PROVIDER: PROVIDER_OPENAI_CHAT})
    account = {**given, CONF_URL: url, CONF_API_KEY: "key"} if url else {CONF_PROVIDER: PROVIDER_NONE}
    account_options = options.pop("account_options", {})
    agent = ConfigSubentryData(
        data={
            CONF_MODEL: "scripted",
            CONF_LLM_HASS_API: ["assist"],
            CONF_ASK_BEFORE_OPENING: AskMode.NEVER,
            **options,
        },
        subentry_type=SUBENTRY_CONVERSATION,
        title="Ada",
        unique_id=None,
    )
    entry = ConfigEntry(
        data=account,
        discovery_keys={},  # type: ignore[arg-type]
        domain=DOMAIN,
        options=account_options,
        source=SOURCE_USER,
        subentries_data=[agent],
        title="Server",
        unique_id=None,
        version=WindowedConversationConfigFlow.VERSION,
        minor_version=WindowedConversationConfigFlow.MINOR_VERSION,
    )
    await hass.config_entries.async_add(entry)
    await hass.async_block_till_done()
    entities = er.async_entries_for_config_entry(er.async_get(hass), entry.entry_id)
    return next(entity.entity_id for entity in entities if entity.domain == "conversation")
