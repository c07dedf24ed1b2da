"""Tests for adding an account with each provider in the browser: each error message, and then the first answer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from playwright.async_api import BrowserContext, Page, ViewportSize, expect
import pytest
import pytest_asyncio

from demo.home_assistant import find_free_port
from demo.model_server import ModelServer
from tests.e2e.browser import AccountForm, save_screenshot
from tests.e2e.house import House

PHONE: ViewportSize = {"width": 390, "height": 844}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of account: its name in the menu, its API's path on the scripted server, and a model of that API."""

    menu: str
    url_path: str
    model: str
    lists_models: bool = True

    def address(self, server: ModelServer) -> str:
        return f"{server.address}{self.url_path}"


KINDS = (
    Kind("OpenAI", "/v1", "gpt-5-mini"),
    Kind("Google Gemini", "", "gemini-2.5-flash"),
    Kind("Anthropic", "", "claude-haiku-4-5"),
    Kind("OpenAI-compatible server", "/v1", "llama"),
    Kind("Azure OpenAI", "", "my-deployment", lists_models=False),
)


async def told(page: Page, form: AccountForm, text: str, name: str) -> None:
    """Wait for the error message, and save screenshots of it at desktop and phone size."""
    await expect(form.error_alerts).to_contain_text(text)
    await save_screenshot(page, name)
    await save_screenshot(page, f"{name}-phone", PHONE)


async def make_each_mistake(page: Page, form: AccountForm, house: House, kind: Kind) -> None:
    """Enter the address of a server that is down, one without a model API, and a key that is refused."""
    await form.enter(f"http://127.0.0.1:{find_free_port()}", "key")
    await told(page, form, "The server cannot be reached.", f"{kind.menu}-down")
    await expect(form.key).to_have_value("key")
    await form.enter(f"{house.url}/static/nothing", "key")
    await told(page, form, "A server responded, but it does not provide the expected API.", f"{kind.menu}-address")
    house.model.fault("401", 1)
    await form.enter(kind.address(house.model), "wrong")
    await told(page, form, "The server did not accept the API key.", f"{kind.menu}-key")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(context: BrowserContext) -> AsyncIterator[Page]:
    """Yield a page that stays open for all accounts; an error in its scripts fails the last test."""
    errors: list[str] = []
    page = await context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    await page.close()
    assert not errors


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.menu)
async def test_each_mistake_is_told_and_the_account_answers_in_the_end(page: Page, house: House, kind: Kind) -> None:
    house.model.change(models=(kind.model,))
    form = AccountForm(page)
    await form.open(house.url, kind.menu)
    await make_each_mistake(page, form, house, kind)

    await form.enter(kind.address(house.model), "key")
    if kind.lists_models:
        await expect(form.model).to_contain_text(kind.model)
    else:
        await expect(form.locator).to_contain_text("Deployment")
        await form.type_model(kind.model)
    await save_screenshot(page, f"{kind.menu}-model")
    await form.submit()
    await form.done()
    answer = await house.ask_other_account("my name is Grace")
    await house.remove_other_accounts()

    assert answer == "Nice to meet you, Grace."
