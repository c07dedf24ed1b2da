"""`python -m demo`: run a home, a model and an agent together, until Ctrl-C or until all inputs were processed.

scripts/demo calls this after it has prepared the environment. The parts are in the other modules of this package.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
import fcntl
import json
import os
from pathlib import Path
import shutil
import signal
import sys
import time

import aiohttp

from demo import dashboard
from demo.automation import save_automation
from demo.client import Client, RefusedError
from demo.errors import DemoError
from demo.home import furnish
from demo.home_assistant import REPOSITORY, RESTART, HomeAssistant, require_free_port
from demo.model_server import WHAT_TO_TRY, ModelServer
from demo.people import PASSWORD, USER, People
from demo.providers import PROVIDERS, SCRIPTED, model_name, scripted_model
from demo.say import Talk
from demo.setup_agent import Account, Model, change_options, create_account, find_account, prefer_agent, sensors
from demo.small_model import MODEL as SMALL_MODEL, SmallModel
from demo.steps import add_steps, says_nothing
from demo.window import WindowWatch

_STATE = REPOSITORY / ".demo"
# This folder is below the state folder, and its name makes it unlikely that --fresh removes anything but a demo home.
_HOME = "demo-home"
_SET_UP = "set-up.json"
_PORT = 8124
_MODEL_PORT = 8125
# The models of this provider have prices, so that the cost sensors have values.
_PROVIDER = "responses"
# This window is small enough to fill up and be trimmed during a demo.
_WINDOW = 2000
# Seconds between the words of the scripted model, so that a person can see the answer grow.
_DELAY = 0.03
# The default model of Home Assistant's own OpenAI integration.
_OPENAI_MODEL = "gpt-4o-mini"
_OPENAI_URL = "https://api.openai.com/v1"
_INTERRUPTED = 130
_BEGAN = time.monotonic()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description="Start Home Assistant with a demo home and an agent to talk to. Ctrl-C ends it.",
        epilog="With OPENAI_API_KEY set (and OPENAI_BASE_URL, OPENAI_MODEL if wanted), that server answers instead.",
    )
    add_steps(parser)
    parser.add_argument("--model", choices=("scripted", "smollm2"), help="who answers (default: scripted)")
    parser.add_argument(
        "--provider", choices=PROVIDERS, help=f"whose account and format the scripted model has (default: {_PROVIDER})"
    )
    parser.add_argument("--window", metavar="TOKENS", type=int, help=f"the size of the window (default: {_WINDOW})")
    parser.add_argument("--summary", action="store_true", help="summarize what leaves the window")
    parser.add_argument("--no-memory", action="store_true", help="have the agent remember nothing but its window")
    parser.add_argument("--fresh", action="store_true", help="forget the home and start over")
    parser.add_argument("--port", type=int, default=_PORT, help=f"of Home Assistant (default: {_PORT})")
    parser.add_argument("--model-port", type=int, default=_MODEL_PORT, help=f"of the model (default: {_MODEL_PORT})")
    parser.add_argument(
        "--state",
        metavar="FOLDER",
        type=Path,
        default=_STATE,
        help="where the home is kept, from the checkout (default: .demo)",
    )
    arguments = parser.parse_args()
    arguments.state = arguments.state.resolve()
    if any(not 1 <= port <= 65535 for port in (arguments.port, arguments.model_port)):
        parser.error("a port is a number from 1 to 65535")
    if arguments.window is not None and not 100 <= arguments.window <= 2_000_000:
        parser.error("--window takes 100 to 2000000 tokens")
    if says_nothing(arguments.steps):
        parser.error("--as, --new-conversation and --restart stand between what is said: add --say")
    if arguments.provider and arguments.model == "smollm2":
        parser.error("--provider is for the scripted model")
    return arguments


@asynccontextmanager
async def _model(arguments: argparse.Namespace) -> AsyncIterator[Model]:
    """Start the chosen model server and yield the Model that describes it. Raises DemoError."""
    key = os.environ.get("OPENAI_API_KEY")
    if key and arguments.model is None and arguments.provider is None:
        url, model = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_MODEL")
        yield Model(url=url or _OPENAI_URL, model=model or _OPENAI_MODEL, api_key=key)
        return
    require_free_port(arguments.model_port, "--model-port")
    if arguments.model == "smollm2":
        async with SmallModel(arguments.model_port) as small:
            # The small model reads about 140 tokens per second, and the tool definitions alone are about 1000 tokens.
            yield Model(url=small.url, model=SMALL_MODEL, controls_home=False, timeouts=(120, 300), window=1500)
        return
    provider = arguments.provider or _PROVIDER
    name = model_name(provider)
    async with ModelServer(port=arguments.model_port, delay=_DELAY, models=(name,)) as scripted:
        yield scripted_model(scripted, provider, name, window=_WINDOW)


async def _prepare(client: Client, model: Model, arguments: argparse.Namespace) -> Account:
    """Set up the home and the agent, except for the parts that an earlier run has set up. Raises DemoError."""
    done = arguments.state / _SET_UP
    same = done.exists() and json.loads(done.read_text()) == model.fingerprint()
    account = await find_account(client) if same else None
    if account is None:
        await furnish(client)
        account = await create_account(client, model)
        await save_automation(client, account.agent_id)
        await dashboard.save_dashboard(client, await sensors(client))
        done.write_text(json.dumps(model.fingerprint()))
    await prefer_agent(client, account.agent_id)
    wanted = ({"history_tokens": arguments.window} if arguments.window else {}) | {"summarize": arguments.summary}
    await change_options(client, account, wanted)
    return account


async def _run(arguments: argparse.Namespace) -> int:
    home_assistant = HomeAssistant(arguments.state / _HOME, arguments.port)
    require_free_port(arguments.port, "--port")
    async with _model(arguments) as found:
        model = replace(found, has_memory=not arguments.no_memory)
        while True:
            _tell("starting Home Assistant")
            async with home_assistant, People(home_assistant) as people:
                account = await _prepare(people.owner, model, arguments)
                played = " (played by the scripted model)" if model.is_scripted and model.model != SCRIPTED else ""
                _tell(f"ready: {model.model}{played} answers what Home Assistant does not understand by itself")
                if arguments.steps:
                    talk = Talk(people, WindowWatch(account.agent_id, summarizes=arguments.summary))
                    return 0 if await talk.take(arguments.steps) else 1
                _welcome(home_assistant.url, account, model)
                code = await home_assistant.wait()
            if code != RESTART:
                raise DemoError(f"Home Assistant ended by itself ({code}); its log is {home_assistant.output}.")


def _welcome(url: str, account: Account, model: Model) -> None:
    print(f"\nOpen      {url}")
    print(f"Log in    {USER}, password {PASSWORD}")
    print('Talk      press "a", or the Assist icon at the top right')
    print("          its microphone hears what is typed on the dashboard, and the answer is spoken in tones")
    print(f"Watch     {url}/{dashboard.PATH}, or all sensors: {url}/config/devices/device/{account.device_id}")
    if model.is_scripted:
        print("\nWhat to say, beside what Home Assistant understands by itself:")
        width = max(len(phrase) for phrase, _ in WHAT_TO_TRY)
        for phrase, shows in WHAT_TO_TRY:
            print(f"  {phrase:<{width}}  {shows}")
    print("\nCtrl-C ends it. The home is kept; --fresh starts over.", flush=True)


def _tell(text: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:4.1f} s] {text}", flush=True)


@contextmanager
def _only_demo(state: Path) -> Iterator[None]:
    """Lock the state folder so that only one demo uses it at a time. Raises DemoError."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DemoError("a demo with this home is running already: end that one first.") from error
        yield


async def _until_signal(arguments: argparse.Namespace) -> int:
    """Run the demo until it ends or a signal arrives; either way, all parts are stopped in order."""
    task = asyncio.ensure_future(_run(arguments))
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if not interrupted:
            print()
            _tell("stopping")
            task.cancel()
        interrupted = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    try:
        return await task
    except asyncio.CancelledError:
        return _INTERRUPTED if arguments.steps else 0


def main() -> int:
    """Run the demo and return the exit code."""
    arguments = _arguments()
    try:
        with _only_demo(arguments.state):
            if arguments.fresh:
                shutil.rmtree(arguments.state / _HOME, ignore_errors=True)
                (arguments.state / _SET_UP).unlink(missing_ok=True)
            return asyncio.run(_until_signal(arguments))
    except DemoError as error:
        print(f"scripts/demo: {error}", file=sys.stderr)
    except BrokenPipeError:
        # The reader of the output is gone: without this, Python would report the broken pipe again on its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (RefusedError, aiohttp.ClientError, TimeoutError) as error:
        print(f"scripts/demo: Home Assistant did not do as it should: {error or 'no answer'}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
