"""Tests for the interface in other languages: everything of ours is translated, and fits on a wide and a narrow screen.

Home Assistant, its frontend and the pipeline change to each language. Every view is looked at in both sizes.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
import json
import re
from typing import Any

from playwright.async_api import Locator
import pytest
import pytest_asyncio

from demo.client import Client, RefusedError
from demo.home_assistant import find_free_port
from demo.setup_agent import Account, ModelAccess, add_account, change_agent
from tests.e2e.browser import AssistDialog, close_dialog, logged_in, navigate, save_screenshot
from tests.e2e.house import House, wait_for
from tests.e2e.page import DOMAIN, PATH, VIEWS, PagePanel, perform_action
from tests.repository_files import PACKAGE, flat

# Each language of the interface, and the code by which a pipeline knows it.
LANGUAGES = {"de": "de", "uk": "uk", "zh-Hans": "zh-CN", "ja": "ja"}
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
FORMS = ("menu", "account", "agent", "options", "talk", "device", "activity", "repairs", "repair-model", "repair-size")

# What is in English in every language.
NAMES = {"Device control"}  # a choice of Home Assistant, whose name is in its code

# Where a text is broken by markup, by a value, or by either.
_MARKUP = re.compile(r"\]\([^)]*\)|[*`\[\]\n]")
_VALUE = re.compile(r"\{[^}]*\}")
_BREAK = re.compile(f"{_MARKUP.pattern}|{_VALUE.pattern}")
_MIN_WORDS, _MIN_LETTERS = 2, 12

# Returns the visible texts of the document, those of attributes as well, and the texts that a box cuts off.
_READ_TEXTS = """() => {
  const texts = [], cut = [];
  const above = element => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host;
  const isSeen = element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const isHidden = overflow => ["hidden", "clip"].includes(overflow);
  const isCut = text => {
    if (text.parentElement.closest("[title]")) return false;
    const range = document.createRange();
    range.selectNodeContents(text);
    const { left, right } = range.getBoundingClientRect();
    for (let box = text.parentElement, level = 0; box && level < 6; box = above(box), level += 1) {
      const { overflowX, webkitLineClamp } = getComputedStyle(box);
      if (["auto", "scroll"].includes(overflowX)) return false;
      const edges = box.getBoundingClientRect();
      if (isHidden(overflowX) && edges.width > 1 && (right > edges.right + 1 || left < edges.left - 1)) return true;
      if (webkitLineClamp !== "none" && box.scrollHeight > box.clientHeight + 1) return true;
    }
    return false;
  };
  const walk = node => {
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (["STYLE", "SCRIPT"].includes(node.tagName) || !isSeen(node) && getComputedStyle(node).display !== "contents")
        return;
      texts.push(...["aria-label", "title", "placeholder", "label", "alt"].map(each => node.getAttribute(each) ?? ""));
    }
    if (node.nodeType === Node.TEXT_NODE && node.nodeValue.trim()) {
      texts.push(node.nodeValue);
      if (isCut(node)) cut.push(node.nodeValue.trim());
    }
    for (const child of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) walk(child);
  };
  walk(document.body);
  const squeeze = each => each.replace(/\\s+/g, " ").trim();
  const width = document.scrollingElement.scrollWidth;
  return { texts: texts.map(squeeze).filter(Boolean), cut: cut.map(squeeze), isWide: width > innerWidth };
}"""


def read_texts(language: str) -> dict[str, str]:
    """Return the texts of a language by their keys."""
    return dict(flat(json.loads((PACKAGE / "translations" / f"{language}.json").read_text(encoding="utf-8"))))


def split_text(text: str) -> list[str]:
    """Return the parts of a text between its values and its markup."""
    return [" ".join(part.split()).strip() for part in _BREAK.split(text)]


def is_long(part: str) -> bool:
    """Return whether a part of a text is long enough to be no name and to occur nowhere else."""
    return len(part.split()) >= _MIN_WORDS and sum(map(str.isalpha, part)) >= _MIN_LETTERS


def build_pattern(text: str) -> str:
    """Return the pattern of a text with any values, or nothing for one that has hardly more than values."""
    parts = [part for part in _MARKUP.split(text) if len(_VALUE.sub("", part).strip()) > 1]
    return "|".join(".+".join(map(re.escape, _VALUE.split(part.strip()))) for part in parts)


class Texts:
    """The texts of a language, and the English ones that must not be seen in it."""

    def __init__(self, language: str) -> None:
        """Read both."""
        self._by_key = read_texts(language)
        everything = "\n".join(" ".join(split_text(text)) for text in self._by_key.values())
        english = {part for text in read_texts("en").values() for part in split_text(text) if is_long(part)}
        self.english = {part for part in english if part not in everything} - NAMES
        self.own = {part for text in self._by_key.values() for part in split_text(text) if len(part) > 1} - english
        self._patterns = re.compile("|".join(filter(None, map(build_pattern, self._by_key.values()))))

    def has(self, shown: str) -> bool:
        """Return whether a text of the language, or a part of it between markup, is shown as this."""
        return bool(self._patterns.fullmatch(shown))

    def format(self, key: str, **values: str) -> str:
        """Return a text of the language with its values."""
        return self._by_key[key].format(**values)


@dataclass(frozen=True, slots=True)
class Seen:
    """The findings of a language by view: English texts, texts that are cut, screens that scroll, and own texts."""

    english: dict[str, set[str]] = field(default_factory=dict)
    cut: dict[str, set[str]] = field(default_factory=dict)
    wide: dict[str, list[str]] = field(default_factory=dict)
    own: dict[str, set[str]] = field(default_factory=dict)


class Visitor:
    """A person who opens all views in a language."""

    def __init__(self, panel: PagePanel, house: House, language: str) -> None:
        """Store the tab of the browser, and read the texts of the language."""
        self._panel = panel
        self._page = panel.page
        self._house = house
        self._language = language
        self.texts = Texts(language)
        self.seen = Seen()

    async def look(self, view: str) -> None:
        """Look at the open view in both sizes."""
        english, cut, own = (set[str]() for _ in range(3))
        self.seen.wide[view] = []
        for name, (width, height) in SIZES.items():
            await self._page.set_viewport_size({"width": width, "height": height})
            await self._page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
            found = await self._page.evaluate(_READ_TEXTS)
            shown = "\n".join(found["texts"])
            english |= {part for part in self.texts.english if part in shown}
            own |= {part for part in self.texts.own if part in shown}
            cut |= {f"{name}: {text}" for text in found["cut"] if self.texts.has(text)}
            self.seen.wide[view] += [name] if found["isWide"] else []
            await save_screenshot(self._page, f"{self._language}-{view}-{name}")
        await self._page.set_viewport_size({"width": SIZES["desktop"][0], "height": SIZES["desktop"][1]})
        self.seen.english[view], self.seen.cut[view], self.seen.own[view] = english, cut, own

    async def load(self, path: str) -> None:
        """Load the frontend, which reads its language then, and go to a page of it."""
        await self._page.goto(f"{self._house.url}/{path}")

    async def go(self, path: str) -> None:
        """Go to another page of the frontend."""
        await navigate(self._page, f"{self._house.url}/{path}")

    def submit_button(self) -> Locator:
        """Return the main button of the open dialog."""
        return self._page.locator("ha-button[slot=primaryAction]").last

    async def add_account(self) -> None:
        """Look at the menu of providers, and at the form of a server that cannot be reached."""
        await self.load(f"config/integrations/dashboard/add?domain={DOMAIN}")
        await self.submit_button().click()
        menu = self._page.locator("step-flow-menu")
        await menu.wait_for()
        await self.look("menu")
        await menu.get_by_text(self.texts.format("config.step.user.menu_options.server"), exact=True).click()
        form = self._page.locator("step-flow-form").first
        await form.locator("input[type=url]").fill(f"http://127.0.0.1:{find_free_port()}")
        await self.submit_button().click()
        await form.locator("ha-alert").first.wait_for()
        await self.look("account")
        await close_dialog(self._page)

    async def _open_form(self, row: Locator) -> Locator:
        """Open the form of an account or an agent: the first button of its row collapses it."""
        await row.locator("ha-icon-button").nth(1).click()
        form = self._page.locator("step-flow-form").first
        await form.locator("ha-form-expandable").last.wait_for()
        return form

    async def change_agent(self) -> None:
        """Look at the form of the agent with all sections open."""
        await self.go(f"config/integrations/integration/{DOMAIN}")
        rows = self._page.locator("ha-config-sub-entry-row").filter(has_text="Window demo")
        await open_sections(await self._open_form(rows.first))
        await self.look("agent")
        await close_dialog(self._page)

    async def change_options(self) -> None:
        """Look at the form of the account with all sections open."""
        await self.go(f"config/integrations/integration/{DOMAIN}")
        rows = self._page.locator("ha-config-entry-row").filter(has_text="Window demo")
        await open_sections(await self._open_form(rows.first))
        await self.look("options")
        await close_dialog(self._page)

    async def open_device(self) -> None:
        """Look at the page of the agent's device, and talk to it there: it answers, and then the model fails."""
        await self.go(f"config/devices/device/{self._house.account.device_id}")
        await self._page.locator("hui-sensor-entity-row").last.wait_for()
        await self.look("device")
        dialog = AssistDialog(self._page)
        await dialog.press_key()
        await dialog.say("my name is Ada")
        await dialog.answer()
        await dialog.say("fail with 400")
        await dialog.answer()
        await self.look("talk")
        await close_dialog(self._page)

    async def open_activity(self) -> None:
        """Look at the rows of the agent under Activity."""
        await self.go(f"logbook?entity_id={self._house.account.agent_id}")
        await self._page.locator("ha-logbook-entry").first.wait_for()
        await self.look("activity")

    async def open_repairs(self) -> None:
        """Look at the issues, and at the flows of two."""
        await self.go("config/repairs")
        for view, issue, step in (
            ("repair-model", "model_retired", "step-flow-form"),
            ("repair-size", "model_too_small", "step-flow-menu"),
        ):
            title = self._page.locator("ha-config-repairs").get_by_text(
                self.texts.format(f"issues.{issue}.title", agent="Ada", model="older")
            )
            await title.wait_for()
            if view == "repair-model":
                await self.look("repairs")
            await title.click()
            await self._page.locator(step).wait_for()
            await self.look(view)
            await close_dialog(self._page)

    async def open_panel(self) -> None:
        """Look at each view of the integration's page."""
        await self.go(PATH)
        await self._panel.open_conversation(self._house.account.agent_id, "looked at")
        for view in VIEWS:
            await self._panel.follow(view)
            await self._panel.main.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
            await self.look(view)
            self.seen.wide[view] += await self._panel.find_wide()


async def open_sections(form: Locator) -> None:
    """Expand the sections of a form."""
    await form.locator("ha-expansion-panel").evaluate_all("all => all.forEach(each => { each.expanded = true; })")


async def change_language(house: House, language: str) -> None:
    """Change the language of the home, its user and its pipeline, and load the names of the entities again."""
    send = house.client.send_command
    await send("config/core/update", language=language)
    settings = dict.fromkeys(("number_format", "time_format", "date_format", "first_weekday"), "language")
    await send("frontend/set_user_data", key="language", value={"language": language, "time_zone": "local", **settings})
    found = await send("assist_pipeline/pipeline/list")
    (pipeline,) = (each for each in found["pipelines"] if each["id"] == house.pipeline)
    code = LANGUAGES.get(language, language)
    fields: dict[str, Any] = {**pipeline, "language": code, "conversation_language": code}
    await send("assist_pipeline/pipeline/update", pipeline_id=fields.pop("id"), **fields)
    await house.client.post(f"/api/config/config_entries/entry/{house.account.entry_id}/reload")


async def raise_issues(house: House, client: Client) -> None:
    """Add an agent whose model has been retired, and make it too small as well."""
    house.model.change(models=("scripted", "older"))
    other: Account = await add_account(client, ModelAccess(url=house.model.url, model="older", api_key="other"), "Ada")
    house.model.change(models=("scripted", "newer"))
    question = {"agent_id": other.agent_id, "text": "my name is Ada"}

    async def ask() -> set[str]:
        """Ask the agent, which Home Assistant refuses during a reload, and return the keys of all issues."""
        with suppress(RefusedError):
            await client.post("/api/services/conversation/process?return_response", question)
        found = await client.send_command("repairs/list_issues")
        return {issue["translation_key"] for issue in found["issues"] if issue["domain"] == DOMAIN}

    await wait_for(ask, lambda keys: "model_retired" in keys)
    await change_agent(client, other, {"context_tokens": 1_000, "max_answer_tokens": 500})
    await wait_for(ask, lambda keys: {"model_retired", "model_too_small"} <= keys)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lively_house(shared_house: House) -> AsyncIterator[House]:
    """Yield the home with a conversation, a fact and two issues, and restore its language at the end."""
    house = shared_house
    house.model.reset()
    house.model.change(delay=0)
    await perform_action(house.client, "remember", text="My bicycle is blue")
    for text in ("I would like the kitchen light switched on", "my name is Ada", "fail with 429"):
        await house.say(text, "looked at")
    await raise_issues(house, house.client)
    yield house
    await change_language(house, "en")
    await house.client.send_command("frontend/set_user_data", key="language", value=None)
    await house.remove_other_accounts()
    house.model.reset()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tab(browser, lively_house: House) -> AsyncIterator[PagePanel]:
    """Yield a tab of the browser, which stays open for all languages."""
    context = await logged_in(browser, lively_house.client)
    yield PagePanel(await context.new_page(), lively_house.url)
    await context.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=LANGUAGES)
async def seen(request: pytest.FixtureRequest, tab: PagePanel, lively_house: House) -> Seen:
    """Open all views in a language."""
    await change_language(lively_house, request.param)
    visitor = Visitor(tab, lively_house, request.param)
    await visitor.add_account()
    await visitor.change_agent()
    await visitor.change_options()
    await visitor.open_device()
    await visitor.open_activity()
    await visitor.open_repairs()
    await visitor.open_panel()
    return visitor.seen


@pytest.mark.parametrize("view", [*FORMS, *VIEWS])
async def test_view_has_texts_of_the_language_and_none_in_english(seen: Seen, view: str) -> None:
    assert (len(seen.own[view]) > 1, seen.english[view]) == (True, set())


@pytest.mark.parametrize("view", [*FORMS, *VIEWS])
async def test_no_text_of_a_view_is_cut(seen: Seen, view: str) -> None:
    assert seen.cut[view] == set()


@pytest.mark.parametrize("view", [*FORMS, *VIEWS])
async def test_view_does_not_scroll_sideways(seen: Seen, view: str) -> None:
    assert seen.wide[view] == []
