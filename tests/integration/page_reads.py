"""A helper that calls the reads of the page as its websocket commands do."""

from collections.abc import Callable, Coroutine
from typing import Any

from homeassistant.core import Context, HomeAssistant, ServiceCall, ServiceResponse
import probatio

from custom_components.windowed_conversation.const import DOMAIN

type Commands = tuple[tuple[str, Callable[[ServiceCall], Coroutine[Any, Any, ServiceResponse]], probatio.Schema], ...]


async def read_page(home: HomeAssistant, commands: Commands, context: Context | None = None, **data: Any) -> Any:
    """Return the response of a module's first command, after its fields were validated."""
    (name, read, schema), *_ = commands
    return await read(ServiceCall(home, DOMAIN, name, schema(data), context=context or Context()))
