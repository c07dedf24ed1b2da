"""The speech of a satellite while the model is silent, and the cost of two hundred waiting turns.

    .venv/demo/bin/python -m benchmarks.waiting --seconds 3 8 20 45 100
    .venv/demo/bin/python -m benchmarks.waiting --table .5 2 3 6 12 40 100
    .venv/demo/bin/python -m benchmarks.waiting --turns 200

1. The demo home runs in this process, with eight satellites for each of three players: one that plays the speech as
soon as there is any, one that plays it at its end, and one whose text-to-speech does not stream. At each player, the
model is silent for the given seconds before each response, with and without tools: it answers, fails, refuses or says
nothing. The eighth command is carried out locally, by a cover that is as slow. Each satellite notes what it hears.

2. Another satellite for each silence and each kind of player asks at the same time. The table says what each hears, and
when. A phone call (VoIP) plays speech at its end; an ESPHome device speaks while it waits only if that is switched on.

3. Turns with a listener, as the pipeline has one, wait for a silent model: those of this integration, and those of
core's OpenAI agent in the same process. A task measures how long the event loop is blocked at most.
"""

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
import re
import resource
import sys
import tempfile
import time
from typing import Any, NamedTuple

import attr
from homeassistant.components import conversation
from homeassistant.components.assist_pipeline.pipeline import PipelineStage
from homeassistant.components.assist_satellite.const import DATA_COMPONENT
from homeassistant.components.tts.const import DATA_COMPONENT as TTS_COMPONENT
from homeassistant.const import Platform
from homeassistant.core import Context, HomeAssistant, ServiceCall
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.chat_session import async_get_chat_session
from homeassistant.helpers.device_registry import DeviceInfo
from homeassistant.util import slugify

from benchmarks.beside_core import SESSION_OWNER_ARGUMENTS, add_core_agent, run_demo_home
import custom_components
from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.hand_over import HAND_OVER_SECONDS
from custom_components.windowed_conversation.bridge.fillers import FILLER_SECONDS, FillerMode
from custom_components.windowed_conversation.const import CONF_FILLER, DOMAIN
from demo.client import Client
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY
from demo.model_server import ModelServer
from demo.setup_agent import ModelAccess, add_account, ensure_pipeline
from demo.voice import SATELLITE_ENTITY_ID, SENTENCE_ENTITY_ID

_PROMISES = (
    "This is taking a while. I'll let you know here.",
    "This is taking a while. You'll get a notification.",
)
_FILLERS = ("Hm.", "One moment.", "Let me check.", "I'm still on it.", "I'm still checking.")
# What an answer that comes later repeats of its question.
_REPEATED_PATTERN = re.compile(r"^(About \".*\": |I couldn't answer \".*\"\. )")
# Each sentence, and the text that is heard at last, if it is always the same.
_VARIANTS = {
    "answer": ("my name is {}", "Nice to meet you, {}."),
    "long answer": ("tell me a story about the sea", None),
    "tool": ("I would like the bedroom light switched on", None),
    "tool, no text": ("quietly switch on the bedroom light", "Done"),
    "error": ("fail with 500", "I can't reach my AI service right now. Lights and timers still work."),
    "refusal": ("fail with refusal", None),
    "nothing": ("fail with empty answer", None),
    "local": ("close the garage door", None),
}
_PLAYERS = ("early", "late", "whole")
# The integration of each kind of player, its setting, and whether it has a media player.
_TABLE_PLAYERS = {
    "streaming": ("wyoming", FillerMode.ON, False),
    "at its end": ("voip", FillerMode.ON, False),
    "ESPHome": ("esphome", FillerMode.ON, True),
    "ESPHome, on": ("esphome", FillerMode.ON_WITH_ESPHOME, True),
}
# The voice needs some time for the first sound.
_TOLERANCE_SECONDS = 0.5
_STALL_SECONDS = 0.005
_POLL_SECONDS = 0.02
_END_SECONDS = 20.0


@dataclass(slots=True)
class Asked:
    """A sentence at a satellite, and what was heard: each text with its seconds after the sentence."""

    player: str
    variant: str
    satellite: Any
    text: str
    truth: str | None

    @property
    def heard(self) -> list[tuple[float, str]]:
        """The texts that were heard."""
        heard = self.satellite.extra_state_attributes.get("heard", [])
        # a late player hears a filler and what follows in one piece
        return [
            (float(each["after"]), text.strip())
            for each in heard
            for text in each["text"].split("\n\n")
            if text.strip()
        ]

    def list_faults(self, seconds: float) -> list[str]:
        """Return the reasons why this is not what a person should hear."""
        texts = [text for _, text in self.heard]
        truths = [_REPEATED_PATTERN.sub("", text) for text in texts if text not in {*_FILLERS, *_PROMISES}]
        faults = []
        if len(truths) != 1 or (self.truth is not None and truths != [self.truth]):
            faults.append(f"heard {truths}")
        if len(set(texts)) != len(texts):
            faults.append("something was heard twice")
        latest = FILLER_SECONDS[0] + _TOLERANCE_SECONDS
        if self.player == "early" and seconds > latest and self.heard[0][0] > latest:
            faults.append(f"first sound after {self.heard[0][0]} s")
        if self.player == "whole" and set(texts) & set(_FILLERS):
            faults.append("a filler without streaming")
        return faults


async def add_satellites(hass: HomeAssistant, player: str, pipeline_name: str, count: int) -> list[Any]:
    """Add satellites that play speech in this way, and return their entities."""
    known = hass.data[DATA_COMPONENT].get_entity(SATELLITE_ENTITY_ID)
    assert known is not None

    class Satellite(type(known)):  # type: ignore[misc]
        def on_pipeline_event(self, event: Any) -> None:
            if ("late" in player or player == "whole") and event.data and event.data.get("tts_start_streaming"):
                return
            super().on_pipeline_event(event)

    select_id = f"select.{slugify(player)}"
    hass.states.async_set(select_id, pipeline_name)
    added = []
    for number in range(count):
        satellite = Satellite(known.platform.config_entry)
        name = f"{player} {number}"
        satellite._attr_unique_id = name  # noqa: SLF001
        satellite._attr_pipeline_entity_id = select_id  # noqa: SLF001
        satellite._attr_device_info = DeviceInfo(identifiers={("bench", name)}, name=name)  # noqa: SLF001
        added.append(satellite)
    await known.platform.async_add_entities(added)
    return added


async def _add_whole_voice(hass: HomeAssistant) -> str:
    """Add a text-to-speech entity that does not stream, and return its entity id."""
    known = next(iter(hass.data[TTS_COMPONENT].entities))
    synthesize = sys.modules[type(known).__module__].synthesize_text
    header = sys.modules[type(known).__module__].WAV_HEADER

    class WholeVoice(type(known)):  # type: ignore[misc]
        _attr_name = "Whole voice"
        _attr_unique_id = "whole"

        def async_supports_streaming_input(self) -> bool:
            return False

        async def async_get_tts_audio(self, message: str, *_more: object, **_options: object) -> tuple[str, bytes]:
            return "wav", header + synthesize(message)

    voice = WholeVoice()
    await known.platform.async_add_entities([voice])
    return str(voice.entity_id)


async def _set_up_player(
    hass: HomeAssistant,
    client: Client,
    model: ModelServer,
    player: str,
    *,
    tts: str | None = None,
    count: int = 1,
    mode: FillerMode = FillerMode.ON,
) -> list[Any]:
    """Add an agent with a pipeline, and return its satellites. A late player has "late" in its name."""
    access = ModelAccess(url=model.url, model="scripted", has_memory=False)
    account = await add_account(client, access, f"Agent {player}")
    entry = hass.config_entries.async_get_known_entry(account.entry_id)
    hass.config_entries.async_update_entry(entry, options={**entry.options, CONF_FILLER: mode})
    pipeline = await ensure_pipeline(client, account.agent_id, player)
    if tts is not None:
        found = await client.send_command("assist_pipeline/pipeline/list")
        fields = next(each for each in found["pipelines"] if each["id"] == pipeline)
        changed = {name: value for name, value in fields.items() if name != "id"} | {"tts_engine": tts}
        await client.send_command("assist_pipeline/pipeline/update", pipeline_id=pipeline, **changed)
    return await add_satellites(hass, player, player, count)


async def _generate_audio() -> Any:
    yield bytes(3200)


async def _ask(hass: HomeAssistant, client: Client, asked: Asked) -> asyncio.Task[None]:
    """Speak the sentence to the satellite, and return the task of its pipeline once the sentence is recognized."""
    await client.call_action("input_text.set_value", SENTENCE_ENTITY_ID, value=asked.text)
    run: Coroutine[Any, Any, None] = asked.satellite.async_accept_pipeline_from_satellite(
        _generate_audio(), end_stage=PipelineStage.TTS
    )
    task = asyncio.create_task(run)
    await wait_until(lambda: task.done() or hass.states.is_state(asked.satellite.entity_id, "processing"), 60)
    return task


async def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait until the condition is true, for at most these seconds."""
    for _ in range(int(seconds / _POLL_SECONDS)):
        if is_so():
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _measure_round(hass: HomeAssistant, client: Client, players: dict[str, _Player], seconds: float) -> list[str]:
    """Let every satellite ask while the model is silent for this time, print what was heard, and return the faults."""
    begun = sum(len(each.model.requests) for each in players.values())
    asked, tasks = list[Asked](), list[asyncio.Task[None]]()
    for player, (model, satellites) in players.items():
        model.change(latency=seconds)
        name = f"{player.title()}{int(seconds)}"
        for satellite, (variant, (sentence, truth)) in zip(satellites, _VARIANTS.items(), strict=True):
            entry = Asked(player, variant, satellite, sentence.format(name), truth and truth.format(name))
            asked.append(entry)
            tasks.append(await _ask(hass, client, entry))
    await asyncio.gather(*tasks)
    await wait_until(lambda: all(map(_is_answered, asked)), 3 * seconds + 60)
    await asyncio.sleep(3)
    faults = [
        f"{each.truth} is in the windows {count} times"
        for each in asked
        if each.variant == "answer" and (count := _count_in_windows(hass, each.truth)) != 1
    ]
    for each in asked:
        row = "; ".join(f"{after:.1f} {text}" for after, text in each.heard)
        print(f"{seconds:5.0f} s  {each.player:<6} {each.variant:<14} {row[:150]}")
        faults += [f"{seconds:g} s, {each.player}, {each.variant}: {fault}" for fault in each.list_faults(seconds)]
    count = sum(len(each.model.requests) for each in players.values()) - begun
    print(f"{seconds:5.0f} s  {count} requests for {len(asked)} sentences", flush=True)
    return faults


def _count_in_windows(hass: HomeAssistant, text: str | None) -> int:
    """Return the number of messages with this text in the windows of all agents."""
    agents = [
        each
        for entry in hass.config_entries.async_loaded_entries(DOMAIN)
        for each in entry.runtime_data.agents.values()
    ]
    windows = [window for agent in agents for window in agent.windows.loaded_windows().values()]
    return sum(message.content == text for window in windows for message in window.messages())


def _is_answered(asked: Asked) -> bool:
    return bool([text for _, text in asked.heard if text not in {*_FILLERS, *_PROMISES}])


async def _measure_waits(folder: Path, silences: list[float]) -> int:
    async with AsyncExitStack() as stack:
        hass, client = await stack.enter_async_context(run_demo_home(str(folder)))
        await set_up_home(client)
        whole, players, faults = await _add_whole_voice(hass), dict[str, _Player](), list[str]()
        for player in _PLAYERS:
            model = await stack.enter_async_context(ModelServer())
            tts = whole if player == "whole" else None
            players[player] = _Player(
                model, await _set_up_player(hass, client, model, player, tts=tts, count=len(_VARIANTS))
            )
        for seconds in silences:

            async def close_slowly(_call: ServiceCall, seconds: float = seconds) -> None:
                await asyncio.sleep(seconds)

            hass.services.async_register("cover", "close_cover", close_slowly)
            faults += await _measure_round(hass, client, players, seconds)
    print(f"{len(faults)} faults", *faults, sep="\n")
    return len(faults)


async def _print_table(folder: Path, silences: list[float]) -> None:
    """Print what is heard at each kind of player for each silence of the model, with the seconds after the sentence."""
    async with AsyncExitStack() as stack:
        hass, client = await stack.enter_async_context(run_demo_home(str(folder)))
        await set_up_home(client)
        asked: dict[tuple[str, float], Asked] = {}
        for player, (platform, mode, has_media_player) in _TABLE_PLAYERS.items():
            for seconds in silences:
                model = await stack.enter_async_context(ModelServer())
                model.change(latency=seconds)
                name = f"{'late ' if platform == 'voip' else ''}{player} {seconds:g}"
                (satellite,) = await _set_up_player(hass, client, model, name, mode=mode)
                _disguise(hass, satellite.entity_id, platform, has_media_player=has_media_player)
                text = f"my name is Ada{len(asked)}"
                asked[player, seconds] = Asked(player, "answer", satellite, text, None)
        await hass.async_block_till_done()
        first = next(iter(asked.values()))
        # the first turn after a start loads what later ones have
        await (await _ask(hass, client, replace(first, text="my name is Grace")))
        tasks = [await _ask(hass, client, each) for each in asked.values()]
        await asyncio.gather(*tasks)
        spoken = [each for (player, _), each in asked.items() if player != "at its end"]
        await wait_until(lambda: all(map(_is_answered, spoken)), max(silences) + _END_SECONDS)
        await asyncio.sleep(3)
        for (player, seconds), each in asked.items():
            heard = "; ".join(f"{after:.1f} {text}" for after, text in each.heard)
            print(f"{player:<12} {seconds:5.1f} s  {heard}")


def _disguise(hass: HomeAssistant, satellite_id: str, platform: str, *, has_media_player: bool) -> None:
    """Make a satellite one of another integration, as far as the registries say."""
    registry = er.async_get(hass)
    entry = registry.entities[satellite_id]
    registry.entities.data[satellite_id] = attr.evolve(entry, platform=platform)
    if has_media_player:
        player = registry.async_get_or_create(Platform.MEDIA_PLAYER, "bench", satellite_id)
        registry.async_update_entity(player.entity_id, device_id=entry.device_id)


class _Player(NamedTuple):
    """The satellites of a player, and the model server of their agent."""

    model: ModelServer
    satellites: list[Any]


class LoopWatch:
    """Measures the longest time for which the event loop was blocked, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_STALL_SECONDS)
            self.longest = max(self.longest, time.perf_counter() - before - _STALL_SECONDS)


def _get_memory_mb() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def _converse(hass: HomeAssistant, entity_id: str, text: str) -> None:
    """Send a text to an agent as the pipeline does: with a listener to its chat log."""
    with (
        async_get_chat_session(hass, None, **SESSION_OWNER_ARGUMENTS) as session,
        conversation.async_get_chat_log(hass, session, chat_log_delta_listener=lambda _log, _delta: None),
    ):
        await conversation.async_converse(hass, text, session.conversation_id, Context(), "en", entity_id)


async def _wait_together(hass: HomeAssistant, entity_id: str, turns: int, seconds: float) -> None:
    """Begin turns with an agent at once, and print the memory while they wait and the longest block of the loop."""
    watch = LoopWatch()
    watching = asyncio.create_task(watch.watch())
    before = _get_memory_mb()
    tasks = [asyncio.create_task(_converse(hass, entity_id, f"my name is Ada{n}")) for n in range(turns)]
    sizes = []
    for _ in range(4):
        await asyncio.sleep(seconds / 4)
        sizes.append(f"{_get_memory_mb() - before:.1f}")
    watching.cancel()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=_END_SECONDS)
    print(f"{entity_id:<38} longest block {watch.longest * 1000:6.1f} ms, memory +{', +'.join(sizes)} MB", flush=True)


async def _add_core(hass: HomeAssistant, model: ModelServer) -> str:
    """Add core's agent for compatible servers, and return its entity id."""
    return (await add_core_agent(hass, "llama_cpp", {"base_url": model.url}, "scripted")).entity_id


async def _measure_turns(folder: Path, turns: int) -> None:
    async with ModelServer() as model, run_demo_home(str(folder)) as (hass, client):
        await set_up_home(client)
        account = await add_account(client, ModelAccess(url=model.url, model="scripted", has_memory=False), "Ours")
        core = await _add_core(hass, model)
        model.change(latency=3 * HAND_OVER_SECONDS)
        for _ in range(2):
            await _wait_together(hass, account.agent_id, turns, HAND_OVER_SECONDS + 5)
            await _wait_together(hass, core, turns, HAND_OVER_SECONDS + 5)


def main() -> int:
    """Run the benchmark; the exit code says whether anything was heard that should not have been."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, nargs="*", default=[], help="how long the model is silent")
    parser.add_argument("--table", type=float, nargs="*", default=[], help="the same, as a table of all players")
    parser.add_argument("--turns", type=int, default=0, help="how many turns wait at once")
    arguments = parser.parse_args()
    custom_components.__path__.append(str(REPOSITORY / "demo"))
    # its requests are not counted here
    setattr(Agent, "give_head_start", lambda _agent: None)  # noqa: B010
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        if arguments.seconds:
            faults = asyncio.run(_measure_waits(Path(folder) / "waits", arguments.seconds))
        if arguments.table:
            asyncio.run(_print_table(Path(folder) / "table", arguments.table))
        if arguments.turns:
            asyncio.run(_measure_turns(Path(folder) / "turns", arguments.turns))
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
