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
from demo.example_week import import_example_week
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY, RESTART_EXIT_CODE, HomeAssistantProcess, require_free_port
from demo.model_server import ModelServer
from demo.people import OWNER_USERNAME, PASSWORD, PersonClients
from demo.providers import PROVIDER_NAMES, SCRIPTED_MODEL_NAME, build_scripted_model, get_model_name
from demo.say import StepRunner
from demo.setup_agent import (
    PIPELINE_NAME_BY_LANGUAGE,
    Account,
    ModelAccess,
    change_options,
    ensure_pipeline,
    find_account,
    find_sensor_ids,
    prefer_agent,
    replace_accounts,
)
from demo.small_model import ABILITIES, SMALL_MODEL_NAME as SMALL_MODEL, SmallModelServer
from demo.steps import add_steps, lacks_input
from demo.tour import take_tour
from demo.window import WindowPrinter

_STATE_FOLDER = REPOSITORY / ".demo"
# This folder is below the state folder, and its name makes it unlikely that --fresh removes anything but a demo home.
_HOME_FOLDER_NAME = "demo-home"
_FINGERPRINT_FILENAME = "set-up.json"
_DEFAULT_PORT = 8124
_DEFAULT_MODEL_PORT = 8125
# The models of this provider have prices, so that the cost sensors have values.
_DEFAULT_PROVIDER = "responses"
# This window is small enough to fill up and be trimmed during a demo.
_DEFAULT_WINDOW_TOKENS = 2000
# Seconds between the words of the scripted model, so that a person can see the answer grow.
_WORD_DELAY_SECONDS = 0.03
_MAX_SILENT_SECONDS = 280
# The default model of Home Assistant's own OpenAI integration.
_DEFAULT_OPENAI_MODEL = "gpt-4o-mini"
_DEFAULT_OPENAI_URL = "https://api.openai.com/v1"
_INTERRUPTED_EXIT_CODE = 130
# Sentences that the start of the demo suggests, with what each shows.
_SENTENCES = {
    "turn on the kitchen light": "carried out at once, without the model",
    "did anyone leave something open?": "one request, because the states go along with the question",
    "remember that Emma has swimming on Tuesday": "kept in memory, without the model",
    "when does Emma have swimming?": "answered from memory, also in a new conversation",
    "remind me in one minute to look at the oven": "said by the satellite, and in the list of reminders",
    "unlock the side door": "asked back first",
    "why did you do that?": "answered from the record of turns",
    "tell me a story about the sea": "a long answer, spoken while it is still being written",
    "fail with 429": "an error, spoken kindly",
}
_STARTED_MONOTONIC = time.monotonic()


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description="Start Home Assistant with a demo home and an agent to talk to. Ctrl-C ends it.",
        epilog="With OPENAI_API_KEY set (and OPENAI_BASE_URL, OPENAI_MODEL if wanted), that server answers instead.",
    )
    add_steps(parser)
    parser.add_argument("--model", choices=("scripted", "smollm2"), help="who answers (default: scripted)")
    parser.add_argument(
        "--provider",
        choices=PROVIDER_NAMES,
        help=f"whose account and format the scripted model has (default: {_DEFAULT_PROVIDER})",
    )
    parser.add_argument(
        "--window", metavar="TOKENS", type=int, help=f"the size of the window (default: {_DEFAULT_WINDOW_TOKENS})"
    )
    parser.add_argument(
        "--silent",
        metavar="SECONDS",
        type=float,
        help="let the scripted model be silent before each answer, and speak to the satellite",
    )
    parser.add_argument("--summary", action="store_true", help="summarize what leaves the window")
    parser.add_argument("--no-memory", action="store_true", help="have the agent remember nothing but its window")
    parser.add_argument("--fresh", action="store_true", help="forget the home and start over")
    parser.add_argument("--port", type=int, default=_DEFAULT_PORT, help=f"of Home Assistant (default: {_DEFAULT_PORT})")
    parser.add_argument(
        "--model-port", type=int, default=_DEFAULT_MODEL_PORT, help=f"of the model (default: {_DEFAULT_MODEL_PORT})"
    )
    parser.add_argument(
        "--state",
        metavar="FOLDER",
        type=Path,
        default=_STATE_FOLDER,
        help="where the home is kept, from the checkout (default: .demo)",
    )
    arguments = parser.parse_args()
    arguments.state = arguments.state.resolve()
    if any(not 1 <= port <= 65535 for port in (arguments.port, arguments.model_port)):
        parser.error("a port is a number from 1 to 65535")
    if arguments.window is not None and not 100 <= arguments.window <= 2_000_000:
        parser.error("--window takes 100 to 2000000 tokens")
    if lacks_input(arguments.steps):
        parser.error("--as, --new-conversation and --restart stand between what is said: add --say")
    if (arguments.provider or arguments.silent) and arguments.model == "smollm2":
        parser.error("--provider and --silent are for the scripted model")
    if arguments.tour and (arguments.steps or arguments.model == "smollm2"):
        parser.error("--tour says its own sentences to the scripted model")
    if arguments.silent is not None and not 0 <= arguments.silent <= _MAX_SILENT_SECONDS:
        parser.error(f"--silent takes 0 to {_MAX_SILENT_SECONDS} seconds")
    return arguments


@asynccontextmanager
async def _start_model(arguments: argparse.Namespace) -> AsyncIterator[ModelAccess]:
    """Start the chosen model server and yield the Model that describes it. Raises DemoError."""
    key = os.environ.get("OPENAI_API_KEY")
    if key and arguments.model is None and arguments.provider is None and arguments.silent is None:
        url, model = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_MODEL")
        yield ModelAccess(url=url or _DEFAULT_OPENAI_URL, model=model or _DEFAULT_OPENAI_MODEL, api_key=key)
        return
    require_free_port(arguments.model_port, "--model-port")
    if arguments.model == "smollm2":
        async with SmallModelServer(arguments.model_port) as small:
            # The small model reads about 140 tokens per second, and the tool definitions alone are about 1000 tokens.
            yield ModelAccess(
                url=small.url, model=SMALL_MODEL, can_control_home=False, turn_timeout=300, window_tokens=1500
            )
        return
    provider = arguments.provider or _DEFAULT_PROVIDER
    name = get_model_name(provider)
    server = ModelServer(
        port=arguments.model_port, delay=_WORD_DELAY_SECONDS, latency=arguments.silent or 0.0, models=(name,)
    )
    async with server as scripted:
        yield build_scripted_model(scripted, provider, name, window=_DEFAULT_WINDOW_TOKENS)


async def _set_up_demo(client: Client, model: ModelAccess, arguments: argparse.Namespace) -> Account:
    """Set up the home and the agent, except for the parts that an earlier run has set up. Raises DemoError."""
    done = arguments.state / _FINGERPRINT_FILENAME
    same = done.exists() and json.loads(done.read_text()) == model.fingerprint()
    account = await find_account(client) if same else None
    if account is None:
        await set_up_home(client)
        account = await replace_accounts(client, model)
        await save_automation(client, account.agent_id)
        sensors = await find_sensor_ids(client)
        await dashboard.save_dashboard(client, sensors)
        await dashboard.show_page_first(client)
        await import_example_week(client, sensors)
        done.write_text(json.dumps(model.fingerprint()))
    await ensure_pipeline(client, account.agent_id, PIPELINE_NAME_BY_LANGUAGE["de"], "de")
    await prefer_agent(client, account.agent_id)
    wanted = ({"history_tokens": arguments.window} if arguments.window else {}) | {"summarize": arguments.summary}
    await change_options(client, account, wanted)
    return account


async def _run_demo(arguments: argparse.Namespace) -> int:
    home_assistant = HomeAssistantProcess(arguments.state / _HOME_FOLDER_NAME, arguments.port)
    require_free_port(arguments.port, "--port")
    async with _start_model(arguments) as found:
        model = replace(
            found,
            has_memory=not arguments.no_memory,
            # the requests of the scripted model cost nothing
            learns=found.is_scripted,
            # so that it can be tried without a satellite
            asks_before_opening="always",
        )
        while True:
            _print_progress("starting Home Assistant")
            async with home_assistant, PersonClients(home_assistant) as people:
                account = await _set_up_demo(people.owner, model, arguments)
                played = (
                    " (played by the scripted model)"
                    if model.is_scripted and model.model != SCRIPTED_MODEL_NAME
                    else ""
                )
                _print_progress(
                    f"ready: {model.model}{played} answers what Home Assistant does not understand by itself"
                )
                if model.model == SMALL_MODEL:
                    print(*ABILITIES, sep="\n", flush=True)
                window = WindowPrinter(account.agent_id, summarizes=arguments.summary)
                if arguments.tour:
                    return 0 if await take_tour(people, window, account.agent_id) else 1
                if arguments.steps:
                    name = PIPELINE_NAME_BY_LANGUAGE[arguments.language or "en"]
                    pipeline = await ensure_pipeline(people.owner, account.agent_id, name, arguments.language or "en")
                    talk = StepRunner(people, window, latency=arguments.silent, pipeline=pipeline)
                    return 0 if await talk.run_steps(arguments.steps) else 1
                _print_welcome(home_assistant.url, account, model)
                code = await home_assistant.wait_for_exit()
            if code != RESTART_EXIT_CODE:
                raise DemoError(f"Home Assistant ended by itself ({code}); its log is {home_assistant.output_file}.")


def _print_welcome(url: str, account: Account, model: ModelAccess) -> None:
    print(f"\nOpen      {url}")
    print(f"Log in    {OWNER_USERNAME}, password {PASSWORD}")
    print('Talk      press "a": the page shows what the model gets, and why it answered')
    print(f"Watch     all sensors: {url}/config/devices/device/{account.device_id}")
    print(f"          a dashboard: {url}/{dashboard.DASHBOARD_PATH}")
    print("          its microphone and its satellite hear what is typed there, and the answer is spoken in tones")
    if model.is_scripted:
        print("\nWhat to say, for example:")
        width = max(map(len, _SENTENCES))
        for sentence, shows in _SENTENCES.items():
            print(f"  {sentence:<{width}}  {shows}")
        print(
            f'\nOr whatever a family says, in German to the assistant "{PIPELINE_NAME_BY_LANGUAGE["de"]}".\n'
            '"What can you do?" lists what the model was scripted for. scripts/demo --tour shows ten things.'
        )
    print("\nCtrl-C ends it. The home is kept; --fresh starts over.", flush=True)


def _print_progress(text: str) -> None:
    print(f"[{time.monotonic() - _STARTED_MONOTONIC:4.1f} s] {text}", flush=True)


@contextmanager
def _lock_state_folder(state: Path) -> Iterator[None]:
    """Lock the state folder so that only one demo uses it at a time. Raises DemoError."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DemoError("a demo with this home is running already: end that one first.") from error
        yield


async def _run_until_signal(arguments: argparse.Namespace) -> int:
    """Run the demo until it ends or a signal arrives; either way, all parts are stopped in order."""
    task = asyncio.ensure_future(_run_demo(arguments))
    interrupted = False

    def on_signal() -> None:
        nonlocal interrupted
        if not interrupted:
            print()
            _print_progress("stopping")
            task.cancel()
        interrupted = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    try:
        return await task
    except asyncio.CancelledError:
        return _INTERRUPTED_EXIT_CODE if arguments.steps or arguments.tour else 0


def main() -> int:
    """Run the demo and return the exit code."""
    arguments = _parse_arguments()
    try:
        with _lock_state_folder(arguments.state):
            if arguments.fresh:
                shutil.rmtree(arguments.state / _HOME_FOLDER_NAME, ignore_errors=True)
                (arguments.state / _FINGERPRINT_FILENAME).unlink(missing_ok=True)
            return asyncio.run(_run_until_signal(arguments))
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
