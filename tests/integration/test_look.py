"""Tests for looks through cameras: the picture is in the requests of one turn, and nowhere else."""

import asyncio
from base64 import b64encode, urlsafe_b64encode
from io import BytesIO
import json
from pathlib import Path
from typing import Any, override

from homeassistant.components.camera import Camera
from homeassistant.components.camera.const import DATA_COMPONENT
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.setup import async_setup_component
from PIL import Image
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import (
    CONF_CAMERAS,
    CONF_MEMORY,
    CONF_PERSISTENCE,
    CONF_RECORD,
    CONF_ROUTING,
    DOMAIN,
)
from demo.model_server import ModelServer, call, words
from demo.model_server.conversation import Answer, Call

from .account_kinds import COMPATIBLE, KINDS, Kind
from .conftest import SayFn, SetUpFn, flush_store, get_speech, until
from .rows import Row, row

__all__ = ["row"]

LOOK = f"{DOMAIN}__look"
# A model of each format that reads pictures, by the name of the account's kind.
MODELS = {
    "openai_responses": "gpt-5.5",
    "openai_chat": "gpt-5.5",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-3-pro",
}
FORMATS = [kind for kind in KINDS if kind.name in MODELS]
OPENAI_CHAT = next(kind for kind in KINDS if kind.name == "openai_chat")


def draw(kind: str = "JPEG", color: str = "navy") -> bytes:
    """Return a small picture of one color, which has the same bytes after it was encoded again."""
    Image.new("RGB", (64, 48), color).save(encoded := BytesIO(), kind, quality=85)
    return encoded.getvalue()


PICTURE = draw()


class Snapshots(Camera):
    """A camera that gives the same picture each time."""

    def __init__(self, name: str, picture: bytes | None = PICTURE, unique_id: str | None = None) -> None:
        super().__init__()
        self._attr_name = name
        self._attr_unique_id = unique_id or name
        self.picture = picture
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    @override
    async def async_camera_image(self, width: int | None = None, height: int | None = None) -> bytes | None:
        self.is_asked.set()
        await self.may_answer.wait()
        return self.picture


class House:
    """A home with an exposed camera at the front door, and an agent that may look through cameras once it is set up."""

    def __init__(self, home: HomeAssistant, set_up: SetUpFn, say: SayFn, server: ModelServer) -> None:
        self.home = home
        self.say = say
        self.server = server
        self.door = Snapshots("Front door")
        self._set_up = set_up

    async def add(self, camera: Snapshots, *, is_exposed: bool = True) -> Snapshots:
        """Add a camera to the home, and return it."""
        await self.home.data[DATA_COMPONENT].async_add_entities([camera])
        async_expose_entity(self.home, "conversation", camera.entity_id, is_exposed)
        return camera

    async def set_up(self, kind: Kind = OPENAI_CHAT, /, **agent: Any) -> None:
        """Set up an agent of this kind of account; keyword arguments change its settings."""
        self.server.change(models=("scripted", *MODELS.values(), "gpt-4"))
        model = MODELS.get(kind.name, "scripted")
        settings = {"model": model, CONF_CAMERAS: True, CONF_ROUTING: "model_only", CONF_MEMORY: "off"}
        account, options = kind.account(self.server), {CONF_PERSISTENCE: "all"}
        await self._set_up(account=account, options=options, **settings | agent)

    async def ask(self, question: str, *answers: Answer) -> str:
        """Ask the agent, whose model gives these answers, and return the last one."""
        self.server.script(*answers)
        return get_speech(await self.say(question))

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of all tools in the newest request, which is one of Chat Completions."""
        messages = self.server.requests[-1].body["messages"]
        return [json.loads(each["content"]) for each in messages if each["role"] == "tool"]

    @property
    def offered(self) -> list[str]:
        """The names of the tools in the newest request, which is one of Chat Completions."""
        return [tool["function"]["name"] for tool in self.server.requests[-1].body["tools"]]


@pytest.fixture
async def house(home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> House:
    """Return a home with an exposed camera."""
    assert await async_setup_component(home, "camera", {})
    house = House(home, set_up, say, model_server)
    await house.add(house.door)
    return house


def count_pictures(body: dict[str, Any], picture: bytes = PICTURE) -> int:
    """Return the number of times that a picture is in a request."""
    text = json.dumps(body)
    return sum(text.count(each) for each in {b64encode(picture).decode(), urlsafe_b64encode(picture).decode()})


def read_all(*folders: Path) -> bytes:
    """Return the content of all files in these folders."""
    return b"".join(path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file())


async def test_picture_is_in_each_later_request_of_its_turn_and_in_none_of_the_next(house: House, row: Row) -> None:
    for kind in FORMATS:
        async with row(kind.name):
            await house.set_up(kind)

            look, switch = call("look", camera="Front door"), call("HassTurnOn", name="kitchen light")
            await house.ask("who is at the door?", look, switch, words("Nobody."))
            await house.ask("tell me a story")

            assert [count_pictures(request.body) for request in house.server.requests] == [0, 1, 1, 0]


async def test_question_about_what_a_camera_sees_is_answered(house: House, row: Row) -> None:
    for kind in FORMATS:
        async with row(kind.name):
            await house.set_up(kind)

            answer = await house.ask("is there a parcel at the front door?")

            assert answer == "I see 1 picture of the front door (JPEG), and no parcel in it."


async def test_camera_is_among_the_entities_of_the_answer(house: House) -> None:
    await house.set_up(states=True)
    events = async_capture_events(house.home, EVENT_TURN)

    await house.ask("is anybody there?", call("look", camera="Front door"), words("Nobody."))

    assert events[0].data["entities"] == [house.door.entity_id]


async def test_two_cameras_are_looked_through_in_one_round(house: House, row: Row) -> None:
    garden = await house.add(Snapshots("Garden", draw(color="green")))
    looks = tuple(Call("look", {"camera": name}) for name in ("Front door", "Garden"))
    for kind in FORMATS:
        async with row(kind.name):
            await house.set_up(kind)

            await house.ask("is all quiet?", Answer(calls=looks), words("All quiet."))

            body = house.server.requests[-1].body
            assert [count_pictures(body, camera.picture or b"") for camera in (house.door, garden)] == [1, 1]


async def test_result_of_a_look_is_true_in_later_turns(house: House) -> None:
    await house.set_up()

    await house.ask("who is at the door?", call("look", camera="Front door"), words("Nobody."))

    (result,) = house.results
    assert result.keys() == {"camera", "at", "note"}
    assert result["note"].startswith("The picture is seen in this turn only.")


@pytest.mark.parametrize(
    ("kind", "agent"),
    [(OPENAI_CHAT, {CONF_CAMERAS: False}), (OPENAI_CHAT, {"model": "gpt-4"}), (COMPATIBLE, {})],
    ids=["off", "a model without pictures", "a server that may not read pictures"],
)
async def test_look_is_not_offered(house: House, kind: Kind, agent: dict[str, Any]) -> None:
    await house.set_up(kind, **agent)

    await house.ask("tell me a story")

    assert LOOK not in house.offered


@pytest.mark.parametrize("is_exposed", [False, True])
async def test_look_is_offered_only_while_a_camera_is_exposed(house: House, is_exposed: bool) -> None:
    async_expose_entity(house.home, "conversation", house.door.entity_id, is_exposed)
    await house.set_up()

    await house.ask("tell me a story")

    assert (LOOK in house.offered) == is_exposed


async def test_hidden_camera_is_as_unknown_as_one_that_does_not_exist(house: House, row: Row) -> None:
    bedroom = await house.add(Snapshots("Bedroom"), is_exposed=False)
    for name in ("Bedroom", "Attic", "kitchen light", " ", "camera.bedroom"):
        async with row(name):
            bedroom.is_asked.clear()
            await house.set_up()

            await house.ask("look there", call("look", camera=name), words("I cannot."))

            assert [result["error"] for result in house.results] == ["not_found"]
            assert not bedroom.is_asked.is_set()


@pytest.mark.parametrize(
    ("area", "error"), [({}, "several_found"), ({"area": "Garden"}, None), ({"area": "Attic"}, "not_found")]
)
async def test_cameras_of_one_name_are_told_apart_by_their_area(
    house: House, area: dict[str, str], error: str | None
) -> None:
    for place in ("Garden", "Street"):
        camera = await house.add(Snapshots("Gate", unique_id=place))
        area_id = ar.async_get(house.home).async_create(place).id
        er.async_get(house.home).async_update_entity(camera.entity_id, area_id=area_id)
    await house.set_up()

    await house.ask("look there", call("look", camera="Gate", **area), words("Done."))

    assert [result.get("error") for result in house.results] == [error]


async def test_model_learns_that_there_is_no_picture(house: House, row: Row) -> None:
    for name, picture, error in (
        ("none", None, "no_picture"),
        ("empty", b"", "no_picture"),
        ("HEIC", b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "not_readable"),
        ("damaged", PICTURE[:300], "not_readable"),
        ("20 MB", PICTURE + bytes(20 * 1024**2), "not_readable"),
    ):
        async with row(name):
            house.door.picture = picture
            await house.set_up()

            await house.ask("who is at the door?", call("look", camera="Front door"), words("I cannot see it."))

            assert [result["error"] for result in house.results] == [error]


async def test_camera_that_is_off_gives_no_picture(house: House) -> None:
    house.door._attr_is_on = False
    await house.set_up()

    answer = await house.ask("is there a parcel at the front door?")

    assert answer == "I could not look: The camera is off or gives no picture right now."


async def test_picture_of_another_type_than_the_camera_states_is_sent(house: House) -> None:
    house.door.picture, house.door.content_type = draw("PNG"), "image/jpeg"
    await house.set_up()

    assert "(JPEG)" in await house.ask("is there a parcel at the front door?")


async def test_eight_pictures_are_enough_for_one_turn(house: House) -> None:
    await house.set_up()

    looks = (Call("look", {"camera": "Front door"}),) * 9
    await house.ask("keep an eye on the door", Answer(calls=looks), words("Enough."))

    assert count_pictures(house.server.requests[-1].body) == 8
    assert house.results[-1]["error"] == "too_many"


async def test_picture_is_never_on_disk(house: House, tmp_path: Path) -> None:
    await house.set_up(**{CONF_RECORD: "full"})

    await house.ask("who is at the door?", call("look", camera="Front door"), words("A cat sits there."))
    await flush_store(house.home)

    stored = await house.home.async_add_executor_job(read_all, tmp_path, Path(house.home.config.config_dir))
    assert b"A cat sits there." in stored
    forms = (
        PICTURE[40:200],
        b64encode(PICTURE[60:120]),
        urlsafe_b64encode(PICTURE[60:120]),
        PICTURE[40:120].hex().encode(),
    )
    assert [form for form in forms if form in stored] == []


async def test_turn_that_is_cancelled_while_the_camera_answers_stays_cancelled(house: House) -> None:
    house.door.may_answer.clear()
    await house.set_up()
    turn = asyncio.create_task(house.ask("who is at the door?", call("look", camera="Front door")))
    await until(house.door.is_asked.is_set)

    turn.cancel()

    with pytest.raises(asyncio.CancelledError):
        await turn
