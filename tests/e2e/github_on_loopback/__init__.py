"""A test integration that redirects Home Assistant's requests for other hosts to a server on loopback.

The host's name becomes the first part of the path. No request leaves the machine.
"""

from typing import Any

import aiohttp
from homeassistant.config_entries import ConfigEntry
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
from yarl import URL


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Redirect the requests for as long as Home Assistant runs."""
    request: Any = aiohttp.ClientSession._request
    server = URL(entry.data[CONF_URL])

    async def redirected(session: aiohttp.ClientSession, method: str, asked: str | URL, **more: Any) -> Any:
        url = URL(asked)
        if url.host and url.host != server.host:
            url = server.joinpath(url.host, *url.raw_parts[1:]).with_query(url.query)
        return await request(session, method, url, **more)

    session_class: Any = aiohttp.ClientSession
    session_class._request = redirected
    return True
