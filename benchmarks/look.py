"""The time for which a look through a camera blocks the event loop, in each format.

    .venv/demo/bin/python -m benchmarks.look

The camera gives a picture of 3840 x 2160 pixels and about 4.5 MB. For each format: the longest time that any callback
held the event loop in turns without and with a look, in milliseconds (the median and the worst of all turns), and how
long the turns took. The model's server runs in a thread of its own.
"""

import argparse
import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
import logging
from statistics import median
from time import perf_counter
from typing import override

from homeassistant.components.camera import Camera
from homeassistant.components.camera.const import DATA_COMPONENT
from homeassistant.components.conversation import async_converse
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import __version__
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers.entity_component import EntityComponent
from homeassistant.setup import async_setup_component
from PIL import Image

from benchmarks.in_process import run_home_assistant
from custom_components.windowed_conversation.const import (
    CONF_CAMERAS,
    CONF_FORMAT,
    CONF_PROVIDER,
    CONF_ROUTING,
    PROVIDER_ANTHROPIC,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
    OpenAIFormat,
)
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server.threaded import serve_in_thread
from tests.routing.agents import add_agent

_LOGGER = logging.getLogger(__name__)

_SIZE = (3840, 2160)
_NOISE = 60
# The method of a handle by which an event loop runs a callback.
_RUN = "_run"
_QUALITY = 77
_QUESTIONS = {"without a look": "tell me a story in 20 words", "with a look": "is there a parcel at the front door?"}


@dataclass(frozen=True, slots=True)
class _Format:
    """A format: the data of its account, the path in its URL, and a model that reads pictures."""

    name: str
    account: Mapping[str, str]
    path: str
    model: str


_FORMATS = (
    _Format("Responses", {CONF_PROVIDER: PROVIDER_OPENAI, CONF_FORMAT: OpenAIFormat.RESPONSES}, "/v1", "gpt-5.5"),
    _Format("Chat", {CONF_PROVIDER: PROVIDER_OPENAI, CONF_FORMAT: OpenAIFormat.CHAT}, "/v1", "gpt-5.5"),
    _Format("Anthropic", {CONF_PROVIDER: PROVIDER_ANTHROPIC}, "", "claude-haiku-4-5"),
    _Format("Gemini", {CONF_PROVIDER: PROVIDER_GEMINI}, "", "gemini-3-pro"),
)


class _Snapshots(Camera):
    """A camera that always gives the same picture."""

    _attr_name = "Front door"

    def __init__(self, picture: bytes) -> None:
        super().__init__()
        self._picture = picture

    @override
    async def async_camera_image(self, width: int | None = None, height: int | None = None) -> bytes | None:
        return self._picture


class _LongestCallback:
    """The longest time that a callback held the event loop since the last reset, in milliseconds."""

    def __init__(self) -> None:
        self.milliseconds = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure each callback of all event loops of this thread while the context is open."""
        run = getattr(asyncio.Handle, _RUN)

        def run_measured(callback: asyncio.Handle) -> None:
            began = perf_counter()
            run(callback)
            self.milliseconds = max(self.milliseconds, 1000 * (perf_counter() - began))

        self.milliseconds = 0.0
        setattr(asyncio.Handle, _RUN, run_measured)
        try:
            yield
        finally:
            setattr(asyncio.Handle, _RUN, run)


async def _add_camera(hass: HomeAssistant) -> int:
    """Add an exposed camera, and return the size of its picture in bytes."""
    Image.effect_noise(_SIZE, _NOISE).convert("RGB").save(encoded := BytesIO(), "JPEG", quality=_QUALITY)
    camera = _Snapshots(encoded.getvalue())
    component = hass.data[DATA_COMPONENT] = EntityComponent[Camera](_LOGGER, "camera", hass)
    await component.async_add_entities([camera])
    async_expose_entity(hass, "conversation", camera.entity_id, should_expose=True)
    return len(encoded.getvalue())


async def _measure_format(hass: HomeAssistant, wire: _Format, url: str, turns: int) -> None:
    options = {"model": wire.model, CONF_CAMERAS: True, CONF_ROUTING: RoutingMode.MODEL_ONLY}
    agent = await add_agent(hass, f"{url}{wire.path}", account=wire.account, **options)
    for name, question in _QUESTIONS.items():
        longest, blocked, seconds, answer = _LongestCallback(), list[float](), list[float](), ""
        for number in range(turns + 1):
            began = perf_counter()
            with longest.measure():
                result = await async_converse(hass, question, f"{name} {number}", Context(), "en", agent)
            answer = result.response.speech["plain"]["speech"]
            # the first turn imports and connects
            if number:
                seconds.append(perf_counter() - began)
                blocked.append(longest.milliseconds)
            await hass.async_block_till_done()
        print(
            f"{wire.name:<12}{name:<16}{median(blocked):>8.1f}{max(blocked):>8.1f}{median(seconds):>10.2f}"
            f"   {answer.split('.')[0][:60]}"
        )


async def _run_benchmark(url: str, turns: int) -> None:
    async with run_home_assistant() as hass:
        for component in ("homeassistant", "conversation", "intent"):
            assert await async_setup_component(hass, component, {})
        megabytes = await _add_camera(hass) / 1e6
        print(f"Home Assistant {__version__}, a picture of {_SIZE[0]} x {_SIZE[1]} pixels and {megabytes:.1f} MB\n")
        print(f"{'':<28}{'median':>8}{'worst':>8}{'seconds':>10}")
        for wire in _FORMATS:
            await _measure_format(hass, wire, url, turns)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="How long a look through a camera blocks the event loop.")
    parser.add_argument("--turns", type=int, default=20, help="turns of each kind and format")
    arguments = parser.parse_args()
    logging.disable()
    # The models of the list are those that the agents ask for.
    with serve_in_thread(models=tuple({each.model for each in _FORMATS})) as server:
        asyncio.run(_run_benchmark(server.address, arguments.turns))


if __name__ == "__main__":
    main()
