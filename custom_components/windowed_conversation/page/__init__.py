"""The page: its websocket commands, and the registration of its files."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from aiohttp import web
from homeassistant.components import websocket_api
from homeassistant.components.websocket_api.connection import ActiveConnection
from homeassistant.components.websocket_api.const import (
    ERR_HOME_ASSISTANT_ERROR,
    ERR_INVALID_FORMAT,
    ERR_UNAUTHORIZED,
    WebSocketCommandHandler,
)
from homeassistant.components.websocket_api.decorators import async_response
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, callback
from homeassistant.exceptions import HomeAssistantError, Unauthorized
from homeassistant.helpers.http import HomeAssistantView
import probatio

from ..agents.actions import ACTIONS
from ..const import DOMAIN, FRONTEND, PANEL_PATH
from . import about_me, conversations, costs, health, model_commands, turns
from .subscription import async_subscribe

_FOLDER = Path(__file__).parent.parent / "frontend"

_CACHE_HEADERS = {"Cache-Control": "public, max-age=2678400"}

# A handler validates the fields itself, because Home Assistant would log an invalid value.
_ANY_FIELDS = probatio.Schema({}, extra=probatio.ALLOW_EXTRA)

type _Read = Callable[[ServiceCall], Awaitable[ServiceResponse]]


@callback
def async_register_commands(hass: HomeAssistant) -> None:
    """Register the websocket commands of the page. Each action is also a command, with the same fields and rights.

    Unlike an action, a command fires no event, so the recorder does not store its texts.
    """
    reads: Iterable[tuple[str, _Read, probatio.Schema]] = (
        *((name, action, schema) for name, action, schema, _ in ACTIONS),
        *conversations.COMMANDS,
        *model_commands.COMMANDS,
        *about_me.COMMANDS,
        *turns.COMMANDS,
        *costs.COMMANDS,
        *health.COMMANDS,
    )
    for name, read, schema in reads:
        command = f"{DOMAIN}/{name}"
        websocket_api.async_register_command(hass, command, _build_handler(name, read, schema), _ANY_FIELDS)
    websocket_api.async_register_command(hass, f"{DOMAIN}/subscribe", async_subscribe, _ANY_FIELDS)


def _build_handler(name: str, read: _Read, schema: probatio.Schema) -> WebSocketCommandHandler:
    @async_response
    async def handle(hass: HomeAssistant, connection: ActiveConnection, message: dict[str, Any]) -> None:
        number = message["id"]
        fields = {key: value for key, value in message.items() if key not in {"id", "type"}}
        try:
            call = ServiceCall(hass, DOMAIN, name, schema(fields), connection.context(message), return_response=True)
            connection.send_result(number, await read(call))
        except probatio.Invalid as err:
            connection.send_error(number, ERR_INVALID_FORMAT, str(err))
        except Unauthorized:
            connection.send_error(number, ERR_UNAUTHORIZED, "Unauthorized")
        except HomeAssistantError as err:
            connection.send_error(
                number,
                ERR_HOME_ASSISTANT_ERROR,
                str(err),
                translation_domain=err.translation_domain,
                translation_key=err.translation_key,
                translation_placeholders=err.translation_placeholders,
            )

    return handle


async def async_register_page(hass: HomeAssistant) -> None:
    """Serve the files of the page, and register its panel and its card. Does nothing without the frontend."""
    if FRONTEND not in hass.config.components:
        return
    # the package of the frontend may be missing
    from homeassistant.components import frontend  # noqa: PLC0415

    files = await hass.async_add_executor_job(_read_files)
    # browsers cache the files for a month, so the path has to change with them
    url = f"/{DOMAIN}/{sha256(b''.join(files.values())).hexdigest()[:16]}"
    hass.http.register_view(_FilesView(url, files))
    frontend.async_register_built_in_panel(
        hass,
        "custom",
        sidebar_title="Windowed Conversation",
        sidebar_icon="mdi:forum-outline",
        frontend_url_path=PANEL_PATH,
        config={
            "_panel_custom": {
                "name": f"{PANEL_PATH}-panel",
                "module_url": f"{url}/panel.js",
                "embed_iframe": False,
                "trust_external": False,
                "handle_safe_area": False,
            }
        },
    )
    frontend.add_extra_js_url(hass, f"{url}/card.js")


class _FilesView(HomeAssistantView):
    """The files of the page, which browsers load without a login. Unlike static paths, it compresses them."""

    requires_auth = False

    def __init__(self, url: str, files: Mapping[str, bytes]) -> None:
        self.url = f"{url}/{{name}}"
        self.name = f"{DOMAIN}:page"
        self._files = files

    async def get(self, _request: web.Request, name: str) -> web.Response:
        """Return a file, or 404."""
        if (content := self._files.get(name)) is None:
            raise web.HTTPNotFound
        response = web.Response(body=content, content_type="text/javascript", charset="utf-8", headers=_CACHE_HEADERS)
        response.enable_compression()
        return response


def _read_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(_FOLDER.glob("*.js"))}
