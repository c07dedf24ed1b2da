"""A real Home Assistant as a child process: its configuration folder, its start and its stop.

The entities of the home are defined in home.py and configuration.yaml.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
import json
import os
from pathlib import Path
import shutil
import signal
import socket
import sys
from types import TracebackType
from typing import Any, Self

import aiohttp

from demo.client import START_TIMEOUT
from demo.errors import DemoError

REPOSITORY = Path(__file__).resolve().parent.parent
CONFIGURATION_FILE = Path(__file__).with_name("configuration.yaml")
SCRIPTED_VOICE_FOLDER = REPOSITORY / "demo" / "scripted_voice"
INTEGRATION_FOLDERS = (REPOSITORY / "custom_components" / "windowed_conversation", SCRIPTED_VOICE_FOLDER)

# Home Assistant's exit code that requests a restart, for example after a restart from the browser.
RESTART_EXIT_CODE = 100

# Integrations that Home Assistant always sets up and that connect to the internet. The demo needs neither of them, and
# works without a network.
_ONLINE_DOMAINS = ("analytics", "marketplace")

# Environment variable of tests, which start Home Assistant dozens of times. If it is set, Python looks for garbage less
# often while Home Assistant runs, and for the last time when it ends. Otherwise, a third of the processor time of a
# start and a stop goes into that.
RARE_COLLECTION_VARIABLE = "DEMO_RARE_GARBAGE_COLLECTION"
_RARE_COLLECTION_CODE = """
import atexit, gc, runpy
gc.set_threshold(200_000)
# the functions are called in reverse order
atexit.register(gc.freeze)
atexit.register(gc.collect)
runpy.run_module("homeassistant", run_name="__main__", alter_sys=True)
"""

# In the configuration folder, for exports.
_MEDIA_FOLDER = "media"

# Seconds that Home Assistant has to save its state and exit.
STOP_TIMEOUT = 30.0


def require_free_port(port: int, option: str) -> None:
    """Raise DemoError if `port` is already in use on this machine or may not be used."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            reason = error.strerror or str(error)
            message = f"port {port} cannot be used ({reason}): choose another one with {option}."
            raise DemoError(message) from error


def find_free_port() -> int:
    """Return a free port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class HomeAssistantProcess:
    """Home Assistant on 127.0.0.1 with the folder `config`; entering the context starts it, leaving it stops it."""

    def __init__(
        self,
        config: Path,
        port: int,
        integrations: Iterable[Path] = INTEGRATION_FOLDERS,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        """Store what to run; nothing is written yet.

        `environment` are additional variables, and `python` is the interpreter of the environment with Home Assistant.
        """
        self.config = config
        self.environment = dict(environment or {})
        self.python = python
        self.port = port
        self.integrations = tuple(integrations)
        self.url = f"http://127.0.0.1:{port}"
        self.output_file = config / "hass.out"
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        """Start Home Assistant and wait until it can serve the first page. Raises DemoError."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop Home Assistant."""
        await self.stop()

    async def start(self) -> None:
        """Write the configuration and start. On return HTTP responds; other parts may still load. Raises DemoError."""
        require_free_port(self.port, "--port")
        write_initial_files(self.config, self.port, self.integrations)
        started = ("-c", _RARE_COLLECTION_CODE) if RARE_COLLECTION_VARIABLE in os.environ else ("-m", "homeassistant")
        command = (self.python, *started, "--config", str(self.config), "--ignore-os-check")
        with self.output_file.open("wb") as output:
            # It needs its own session; otherwise Ctrl-C would reach it before the demo can stop it in order.
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                cwd=self.config,
                env=build_environment(self.config) | self.environment,
                start_new_session=True,
            )
        try:
            await self._wait_for_http()
        except BaseException:
            await self.stop()
            raise

    async def wait_for_exit(self) -> int:
        """Wait until Home Assistant exits by itself, and return its exit code."""
        assert self._process
        return await self._process.wait()

    async def stop(self) -> None:
        """Ask Home Assistant to save its state and exit; kill it if it has not exited after STOP_TIMEOUT."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def kill(self) -> None:
        """Kill Home Assistant at once, as a power failure would."""
        process, self._process = self._process, None
        assert process
        process.kill()
        await process.wait()

    async def _wait_for_http(self) -> None:
        assert self._process
        log = f"its log is {self.output_file}"
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            for _ in range(int(START_TIMEOUT * 10)):
                if self._process.returncode is not None:
                    raise DemoError(f"Home Assistant ended while it started; {log}.")
                if await _is_responding(session, f"{self.url}/manifest.json"):
                    return
                await asyncio.sleep(0.1)
        raise DemoError(f"Home Assistant did not start within {START_TIMEOUT:.0f} seconds; {log}.")


async def _is_responding(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError, TimeoutError:
        return False


def build_environment(config: Path) -> dict[str, str]:
    """Return the environment of Home Assistant, which has the media folder of the demo."""
    # The key must reach Home Assistant through the account form, as it does for a user, and not through the
    # environment.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHON"))}
    return {**inherited, "DEMO_MEDIA_FOLDER": str(config / _MEDIA_FOLDER)}


def write_initial_files(config: Path, port: int, integrations: Iterable[Path] = INTEGRATION_FOLDERS) -> None:
    """Write the files needed for a start: configuration, integrations, port, and the disabled parts.

    Changes that Home Assistant made to these files are kept, except for the port.
    """
    storage = config / ".storage"
    storage.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CONFIGURATION_FILE, config / "configuration.yaml")
    for folder in ("custom_components", _MEDIA_FOLDER):
        (config / folder).mkdir(exist_ok=True)
    for integration in integrations:
        link = config / "custom_components" / integration.name
        link.unlink(missing_ok=True)
        link.symlink_to(integration, target_is_directory=True)
    # This is the file that Home Assistant's automation editor writes.
    (config / "automations.yaml").touch()
    _write_http_settings(storage / "http", port)
    if not (storage / "onboarding").exists():
        # The other onboarding steps would set up integrations that need the internet; only creating the user remains.
        write_storage_file(storage / "onboarding", (4, 1), {"done": ["core_config", "analytics", "integration"]})
    if not (storage / "core.config_entries").exists():
        write_storage_file(
            storage / "core.config_entries",
            (1, 5),
            {"entries": [_build_disabled_entry(each) for each in _ONLINE_DOMAINS]},
        )


def _write_http_settings(path: Path, port: int) -> None:
    if path.exists():
        kept = json.loads(path.read_text())
        kept["data"] |= {"stable": kept["data"]["stable"] | {"server_port": port}, "pending": None}
        path.write_text(json.dumps(kept))
        return
    # The port belongs into the stable slot, because Home Assistant tries a port from YAML for only five minutes.
    stable = {
        "server_host": ["127.0.0.1"],
        "server_port": port,
        "cors_allowed_origins": [],
        "login_attempts_threshold": -1,
        "ip_ban_enabled": True,
        "ssl_profile": "modern",
        "use_x_frame_options": True,
        "created_at": datetime.now(UTC).isoformat(),
        "error": None,
        "error_message": None,
    }
    write_storage_file(path, (2, 2), {"stable": stable, "pending": None, "yaml_migration_done": True})


def _build_disabled_entry(domain: str) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {
        "created_at": now,
        "modified_at": now,
        "data": {},
        "options": {},
        "disabled_by": "user",
        "discovery_keys": {},
        "domain": domain,
        "entry_id": f"demo_{domain}",
        "version": 1,
        "minor_version": 1,
        "pref_disable_new_entities": False,
        "pref_disable_polling": False,
        "source": "system",
        "subentries": [],
        "title": domain.capitalize(),
        "unique_id": None,
    }


def write_storage_file(path: Path, version: tuple[int, int], data: dict[str, Any]) -> None:
    """Write a file as Home Assistant's stores do; its name is the key of the store."""
    major, minor = version
    path.write_text(json.dumps({"version": major, "minor_version": minor, "key": path.name, "data": data}))
