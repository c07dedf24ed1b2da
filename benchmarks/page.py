"""The page in a browser, with many conversations and turns: its first paint, scrolling, and bytes.

    .venv/demo/bin/python -m benchmarks.page                (--quick, --cpu 4 for a device that is four times slower)
    .venv/demo/bin/python -m benchmarks.page_turns          the CPU time of a turn while the page is open

A real Home Assistant in a process of its own has 100 conversations of 500 exchanges and 10,000 turns in its record.
It is then restarted, so that the conversations are on disk. Each round loads the page anew in Chromium, without a
cache, on a conversation of one exchange and on one of 500, in turns.

1. Milliseconds from the moment when the script of the panel ran until the list and the conversation were painted, and
until another long one was painted after a click.

2. While the wheel scrolls through the 500 exchanges: the longest task of the page's main thread, the longest frame, and
the share of frames that took more than one and a half times the usual. The same page without scrolling is beside it.

3. The bytes of our scripts, as sent and as they are; requests to other hosts; errors in the browser's console.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
import json
from pathlib import Path
import shutil
from statistics import median
import tempfile
import time
from typing import Any
from urllib.parse import quote_plus, urlsplit

from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright

from benchmarks.record import iter_record_builders
from benchmarks.turn import run_model_server
from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.record import RECORD, TurnRecord, store_turn
from custom_components.windowed_conversation.store import WriteJob
from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY, HomeAssistantProcess, find_free_port
from demo.setup_agent import DOMAIN, Account, ModelAccess, add_account
from tests.e2e.browser import ARGUMENTS, logged_in

LONG, SHORT = "conversation 7", "short"

_OTHER = "conversation 9"
_SCRIPTS = REPOSITORY / "custom_components" / DOMAIN / "frontend"
_PANEL = "windowed-conversation"
_STORE_FILE = ".storage/windowed_conversation.db"
_WINDOW_TOKENS = 200_000
_SCROLL_SECONDS = 4.0
_WHEEL_PIXELS = 400
_WHEEL_SECONDS = 0.05
_MAX_SCRIPT_BYTES = 100_000
_MAX_PAINT_MS = 1_000
# A frame counts as dropped if it took longer than this many usual frames.
_DROPPED_FRAMES = 1.5
_USUAL_FRAME_MS = 1_000 / 60

# Notes the times at which the panel's script ran and at which its nodes were painted.
_WATCH = """
(() => {
  const times = (window.benchmark = { painted: {}, longest: 0 });
  const define = customElements.define.bind(customElements);
  customElements.define = (name, ...rest) => {
    if (name === "windowed-conversation-panel") times.ran = performance.now();
    return define(name, ...rest);
  };
  new PerformanceObserver((list) => {
    for (const { duration, startTime } of list.getEntries()) {
      if (startTime >= (times.ran ?? Infinity)) times.longest = Math.max(times.longest, duration);
    }
  }).observe({ type: "longtask" });
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    if (this.localName !== "windowed-conversation-panel") return root;
    times.root = root;
    const note = (name) => {
      times.painted[name] = 0;
      requestAnimationFrame(() => setTimeout(() => { times.painted[name] = performance.now(); }));
    };
    new MutationObserver(() => {
      if (times.painted.list === undefined && root.querySelector(".list > li")) note("list");
      const link = root.querySelector(".list a[aria-current=true]");
      const opened = link && new URL(link.href).searchParams.get("conversation");
      if (opened && times.painted[opened] === undefined && root.querySelector(".items > li")) note(opened);
    }).observe(root, { childList: true, subtree: true, attributes: true });
    return root;
  };
})();
"""

_FRAMES = """
(seconds) => new Promise((resolve) => {
  const frames = [];
  const until = performance.now() + seconds * 1000;
  let before = performance.now();
  benchmark.longest = 0;
  const step = (now) => {
    frames.push(now - before);
    before = now;
    if (now < until) requestAnimationFrame(step);
    else setTimeout(() => resolve({ frames: frames.slice(1), longest: benchmark.longest }), 200);
  };
  requestAnimationFrame(step);
})
"""

_RESOURCES = """
() => performance.getEntriesByType("resource").filter(({ name }) => name.includes("/windowed_conversation/"))
  .map(({ name, encodedBodySize, decodedBodySize }) => [name, encodedBodySize, decodedBodySize])
"""

# Home Assistant's page scrolls, or an element of the panel.
_SCROLLED = "Math.max(scrollY, benchmark.root.querySelector('main').scrollTop)"


@dataclass(frozen=True, slots=True)
class HomeSize:
    """The number of conversations, of exchanges in each of them but one, and of turns in the record."""

    conversations: int = 100
    exchanges: int = 500
    turns: int = 10_000


@dataclass(slots=True)
class Figures:
    """The figures of all rounds: values by their name, bytes of scripts, and what should be empty.

    `slower` is how many times slower the browser's processor was made.
    """

    slower: float = 1
    values: dict[str, list[float]] = field(default_factory=dict)
    scripts: dict[str, tuple[int, int]] = field(default_factory=dict)
    other_hosts: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def add(self, name: str, value: float) -> None:
        """Add a value."""
        self.values.setdefault(name, []).append(value)

    def watch(self, page: Page, url: str) -> None:
        """Note requests of a page to other hosts than that of the URL, and errors in its console."""

        def on_request(request: Request) -> None:
            target = urlsplit(request.url)
            if target.scheme.startswith("http") and target.netloc != urlsplit(url).netloc:
                self.other_hosts.add(target.netloc)

        def on_console(message: ConsoleMessage) -> None:
            if message.type == "error":
                self.errors.append(message.text)

        page.on("request", on_request)
        page.on("console", on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))


@asynccontextmanager
async def connect(home: HomeAssistantProcess) -> AsyncIterator[Client]:
    """Yield a client of the owner of a running home."""
    async with Client(home.url, await log_in_or_onboard(home.url, "bench", "bench")) as client:
        await client.wait_until_running()
        yield client


async def fill_home(home: HomeAssistantProcess, url: str, size: HomeSize) -> Account:
    """Start a home, give its new agent conversations and recorded turns, stop the home, and return the account."""
    async with home, connect(home) as client:
        await set_up_home(client)
        model = ModelAccess(url=url, model="scripted", window_tokens=_WINDOW_TOKENS)
        account = await add_account(client, model)
        exported = await _export_exchange(client, account.agent_id)
        for number in range(size.conversations):
            exchanges, name = (size.exchanges, f"conversation {number}") if number else (1, SHORT)
            copies = _copy_exchange(exported, exchanges, first=1_000 * number + 1)
            await _call(client, "import_conversation", account.agent_id, name, export=copies)
    memory = Memory(home.config / _STORE_FILE, ("en", "en"), rooms=(RECORD,))
    for number, build in enumerate(iter_record_builders(size.turns, time.time())):
        turn: TurnRecord = {
            **build(),
            "agent": account.subentry_id,
            "conversation_id": f"conversation {number % size.conversations}",
        }
        memory.add([WriteJob(partial(store_turn, build=partial(copy, turn)))])
    memory.close()
    return account


def _make_topic(number: int) -> str:
    return f"the lamp and the door number {number}, which came to the garden with a letter"


def _copy_exchange(exported: dict[str, Any], number: int, first: int) -> dict[str, Any]:
    """Return an exported conversation with `number` copies of its only exchange, about the topics from `first` on."""
    (exchange,) = exported["exchanges"]
    text = json.dumps(exchange)
    exchanges = [json.loads(text.replace(_make_topic(0), _make_topic(each))) for each in range(first, first + number)]
    return {**exported, "exchanges": exchanges}


async def _export_exchange(client: Client, agent_id: str) -> dict[str, Any]:
    """Return an exported conversation of one exchange about the topic 0, which is then no longer stored."""
    text = f"explain {_make_topic(0)}"
    await client.send_command("conversation/process", text=text, agent_id=agent_id, conversation_id="template")
    answer = await _call(client, "get_conversation", agent_id, "template", content="export")
    await _call(client, "delete_conversation", agent_id, "template")
    exported: dict[str, Any] = answer["export"]
    return exported


async def _call(client: Client, name: str, agent_id: str, conversation_id: str, **data: Any) -> Any:
    """Return the result of a command of the page about a conversation."""
    ids = {"entity_id": agent_id, "conversation_id": conversation_id}
    return await client.send_command(f"{DOMAIN}/{name}", **ids, **data)


@asynccontextmanager
async def launch_browser() -> AsyncIterator[Browser]:
    """Yield a headless Chromium, as installed on the system."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise SystemExit("there is no Chromium: run scripts/setup browser")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, headless=True, args=list(ARGUMENTS))
        yield browser
        await browser.close()


@asynccontextmanager
async def open_page(
    browser: Browser, client: Client, agent_id: str, conversation: str, figures: Figures
) -> AsyncIterator[Page]:
    """Yield the page in a new browser context, after it has painted a conversation."""
    context = await logged_in(browser, client, has_motion=True)
    await context.add_init_script(_WATCH)
    page = await context.new_page()
    figures.watch(page, client.url)
    if figures.slower > 1:
        session = await context.new_cdp_session(page)
        await session.send("Emulation.setCPUThrottlingRate", {"rate": figures.slower})
    await page.goto(f"{client.url}/{_PANEL}/conversation?entity={agent_id}&conversation={quote_plus(conversation)}")
    await _wait_for_paint(page, conversation)
    yield page
    await context.close()


async def _wait_for_paint(page: Page, conversation: str) -> float:
    """Return the time at which the page painted a conversation, as soon as it has."""
    await page.wait_for_function("name => window.benchmark?.painted[name]", arg=conversation)
    at: float = await page.evaluate("name => benchmark.painted[name]", conversation)
    return at


async def _measure_load(page: Page, conversation: str, figures: Figures) -> None:
    """Measure the first paint of a page that has painted this conversation."""
    kind = "short" if conversation == SHORT else "long"
    ran, listed, longest = await page.evaluate("[benchmark.ran, benchmark.painted.list, benchmark.longest]")
    figures.add(f"first paint of the list, {kind}", listed - ran)
    figures.add(f"first paint of the conversation, {kind}", await _wait_for_paint(page, conversation) - ran)
    figures.add(f"longest task until then, {kind}", longest)
    for name, sent, size in await page.evaluate(_RESOURCES):
        figures.scripts[name.rsplit("/", 1)[-1]] = (int(sent), int(size))


async def _measure_open(page: Page, figures: Figures) -> None:
    """Measure the time from a click on another long conversation to its paint."""
    link = page.locator(f".list a[href$='conversation={quote_plus(_OTHER)}']")
    began = await link.evaluate("link => { link.click(); return performance.now(); }")
    figures.add("click to paint of another long one", await _wait_for_paint(page, _OTHER) - began)


async def _measure_scrolling(page: Page, figures: Figures, *, does_scroll: bool) -> None:
    """Measure frames while the wheel scrolls through the open conversation, or while nothing happens."""
    await page.locator(".items > li").first.hover(position={"x": 5, "y": 5})
    frames = asyncio.create_task(page.evaluate(_FRAMES, _SCROLL_SECONDS))
    until = time.monotonic() + _SCROLL_SECONDS
    while does_scroll and time.monotonic() < until:
        await page.mouse.wheel(0, _WHEEL_PIXELS)
        await asyncio.sleep(_WHEEL_SECONDS)
    measured = await frames
    name = "scrolling" if does_scroll else "still"
    usual = median(measured["frames"])
    dropped = sum(frame > _DROPPED_FRAMES * _USUAL_FRAME_MS for frame in measured["frames"])
    figures.add(f"usual frame, {name}", usual)
    figures.add(f"longest frame, {name}", max(measured["frames"]))
    figures.add(f"dropped frames in a hundred, {name}", 100 * dropped / len(measured["frames"]))
    figures.add(f"longest task, {name}", measured["longest"])
    if does_scroll:
        figures.add("pixels scrolled", await page.evaluate(_SCROLLED))


async def _measure_rounds(client: Client, agent_id: str, rounds: int, slower: float) -> Figures:
    figures = Figures(slower)
    async with launch_browser() as browser:
        # The first load warms Home Assistant and the browser up.
        async with open_page(browser, client, agent_id, SHORT, Figures(slower)):
            pass
        for number in range(rounds):
            for conversation in (SHORT, LONG) if number % 2 else (LONG, SHORT):
                async with open_page(browser, client, agent_id, conversation, figures) as page:
                    await _measure_load(page, conversation, figures)
                    if conversation == LONG:
                        await _measure_scrolling(page, figures, does_scroll=False)
                        await _measure_scrolling(page, figures, does_scroll=True)
                        await _measure_open(page, figures)
    return figures


def _print_figures(figures: Figures) -> None:
    print(f"{'':<42}{'median':>9}{'least':>9}{'most':>9}")
    for name, values in figures.values.items():
        print(f"{name:<42}{median(values):>9.1f}{min(values):>9.1f}{max(values):>9.1f}")
    long, short = (median(figures.values[f"first paint of the conversation, {kind}"]) for kind in ("long", "short"))
    sent, size = (sum(each[at] for each in figures.scripts.values()) for at in (0, 1))
    everything = sum(path.stat().st_size for path in _SCRIPTS.glob("*.js"))
    print(f"\nfirst paint, long beside short: {long / short:.2f}; at most {_MAX_PAINT_MS} ms: {long:.0f}")
    print(f"scripts: {len(figures.scripts)} loaded, {size} bytes, {sent} as sent")
    print(f"all scripts: {everything} bytes; at most {_MAX_SCRIPT_BYTES}")
    print(f"requests to other hosts: {sorted(figures.other_hosts)}; errors in the console: {figures.errors}")


async def _run_benchmark(rounds: int, slower: float, size: HomeSize) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with run_model_server() as url:
            home = HomeAssistantProcess(Path(folder), find_free_port())
            account = await fill_home(home, url, size)
            async with home, connect(home) as client:
                _print_figures(await _measure_rounds(client, account.agent_id, rounds, slower))


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="The page with many conversations in a browser.")
    parser.add_argument("--rounds", type=int, default=9, help="loads of each conversation")
    parser.add_argument("--cpu", type=float, default=1, help="how many times slower the browser's processor is")
    parser.add_argument("--quick", action="store_true", help="3 rounds, 10 conversations of 50 exchanges, 500 turns")
    arguments = parser.parse_args()
    rounds, size = (3, HomeSize(10, 50, 500)) if arguments.quick else (arguments.rounds, HomeSize())
    asyncio.run(_run_benchmark(rounds, arguments.cpu, size))


if __name__ == "__main__":
    main()
