"""Page objects for the integration's own page and its card, and what they are searched for by eye and by ear."""

import asyncio
from collections.abc import Iterable
import json
import re
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Locator, Page, Request, WebSocket, expect

from demo.client import Client
from tests.e2e.browser import navigate

DOMAIN = "windowed_conversation"
PATH = "windowed-conversation"
ADVANCED = ("conversation", "health", "commands")
VIEWS = ("memory", "turns", "costs", *ADVANCED)
_TABS = 4

# What a person may say and a model may answer.
HOSTILE_WORDS = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "**bold** [link](javascript:alert(1)) ![image](http://example.com/x.png)",
    "\u202eمرحبا بالعالم كيف حالك اليوم\u202c",  # noqa: RUF001
)

# Milliseconds to wait for a page of the frontend on a busy machine with two cores.
_TIMEOUT_MS = 60_000

_CONTROLS = {
    "button",
    "checkbox",
    "combobox",
    "dialog",
    "DisclosureTriangle",
    "image",
    "img",
    "link",
    "listbox",
    "radio",
    "searchbox",
    "spinbutton",
    "textbox",
}

# Compares each visible text with what is painted behind it, as WCAG 2.2 defines contrast. Returns what is too faint,
# and the number of texts.
_FIND_FAINT_TEXTS = """panel => {
  const parse = text => {
    const [r, g, b, a = 1] = (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    return text.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((value, at) => value * a + below[at] * (1 - a));
  const above = element => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host;
  const behind = element => {
    if (!element) return [255, 255, 255];
    const color = parse(getComputedStyle(element).backgroundColor);
    return color[3] === 1 ? color.slice(0, 3) : over(color, behind(above(element)));
  };
  const opacity = element => element ? Number(getComputedStyle(element).opacity) * opacity(above(element)) : 1;
  const luminance = color => color
    .map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const isSeen = element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && !element.closest(".visually-hidden, :disabled, option") && element.getClientRects().length > 0;
  const texts = [];
  const walk = node => {
    if (node.nodeType === Node.TEXT_NODE && node.nodeValue.trim() && isSeen(node.parentElement)) texts.push(node);
    for (const child of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) walk(child);
  };
  walk(panel);
  const faint = [];
  for (const text of texts) {
    const element = text.parentElement;
    const style = getComputedStyle(element);
    const background = behind(element);
    const [r, g, b, a] = parse(style.color);
    const [one, other] = [over([r, g, b, a * opacity(element)], background), background].map(luminance);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${text.nodeValue.trim().slice(0, 60)}`);
  }
  return { faint, count: texts.length };
}"""

# Returns the elements that reach beyond the screen, unless they are in a box that scrolls by itself.
_FIND_WIDE = """panel => {
  const wide = [];
  const scrolls = element => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const walk = (element, isInScroller) => {
    const { right, left, width } = element.getBoundingClientRect();
    if (!isInScroller && width && !element.matches(".visually-hidden") && (right > innerWidth + 1 || left < -1)) {
      wide.push(`${element.tagName} ${element.className} ${Math.round(left)} to ${Math.round(right)}`);
    }
    for (const child of [...(element.shadowRoot?.children ?? []), ...element.children]) {
      walk(child, isInScroller || (element.tagName !== "MAIN" && scrolls(element)));
    }
  };
  walk(panel, false);
  const screen = document.scrollingElement;
  if (screen.scrollWidth > innerWidth) wide.push(`the page is ${screen.scrollWidth} wide`);
  return wide;
}"""

# Returns the controls whose focus ring a box around them cuts off at a side. A box that scrolls sideways shows the ring
# of a control that it has scrolled to.
_FIND_CUT_RINGS = """panel => {
  const above = element => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host;
  const cuts = element => {
    const { overflowX, contentVisibility } = getComputedStyle(element);
    return ["hidden", "clip"].includes(overflowX) || contentVisibility === "auto";
  };
  const controls = [...panel.shadowRoot.querySelectorAll("a, button, input, select, textarea, summary")];
  const cut = [];
  for (const control of controls.filter(each => each.checkVisibility())) {
    control.focus();
    const { outlineWidth, outlineOffset } = getComputedStyle(control);
    const ring = parseFloat(outlineWidth) + parseFloat(outlineOffset);
    const { left, right } = control.getBoundingClientRect();
    for (let box = above(control); box && box !== panel; box = above(box)) {
      const edge = box.getBoundingClientRect?.();
      if (cuts(box) && (left - ring < edge.left || right + ring > edge.right)) {
        cut.push(`${control.tagName} ${control.textContent} in ${box.tagName} ${box.className}`);
      }
    }
  }
  return { cut, count: controls.length };
}"""


async def perform_action(client: Client, action: str, **data: Any) -> Any:
    """Perform an action of the integration and return its response. Raises RefusedError."""
    answer = await client.post(f"/api/services/{DOMAIN}/{action}?return_response", data)
    return answer["service_response"]


class Traffic:
    """The subscriptions of a browser's page, its requests to other hosts, its errors, and its dialogs."""

    def __init__(self, page: Page, url: str) -> None:
        """Listen from now on; `url` is that of Home Assistant."""
        self._url = url
        self._subscriptions: set[tuple[WebSocket, int]] = set()
        self.errors: list[str] = []
        self.strangers: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        page.on("request", self._on_request)
        page.on("websocket", self._on_websocket)

    def take_complaints(self) -> list[str]:
        """Return the errors, the dialogs and the requests to other hosts since the last call."""
        complaints = [*self.errors, *self.strangers]
        self.errors.clear()
        self.strangers.clear()
        return complaints

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions to the figures of conversations that are open."""
        return len(self._subscriptions)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.strangers.append(request.url)

    def _on_websocket(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda payload: self._on_sent(socket, payload))
        socket.on("close", lambda _: self._forget_socket(socket))

    def _on_sent(self, socket: WebSocket, payload: str | bytes) -> None:
        message = json.loads(payload)
        for each in message if isinstance(message, list) else [message]:
            if each["type"] == f"{DOMAIN}/subscribe":
                self._subscriptions.add((socket, each["id"]))
            self._subscriptions.discard((socket, each.get("subscription")))

    def _forget_socket(self, socket: WebSocket) -> None:
        self._subscriptions = {each for each in self._subscriptions if each[0] is not socket}


class PagePanel:
    """The integration's page."""

    def __init__(self, page: Page, url: str) -> None:
        """Store the browser's page and the address of Home Assistant; `open` opens the panel."""
        self.page = page
        self.traffic = Traffic(page, url)
        self._url = url
        self.locator = page.locator(f"{PATH}-panel")
        self.main = self.locator.locator("main")
        self.status = self.locator.get_by_role("status")

    async def open(self, path: str = "conversation") -> None:
        """Go to a view, with its query, and wait until it has loaded. If the page is open, only the view is loaded."""
        url = f"{self._url}/{PATH}/{path}"
        if await self.locator.count() and self.page.url != url:
            await navigate(self.page, url)
        else:
            await self.page.goto(url)
        await self.loaded()

    async def open_conversation(self, entity_id: str, conversation_id: str) -> None:
        """Go to a conversation."""
        await self.open(f"conversation?{urlencode({'entity': entity_id, 'conversation': conversation_id})}")

    async def follow(self, view: str) -> None:
        """Select the tab of a view, and wait until it has loaded."""
        if view in ADVANCED and not await self.locator.locator("nav.sub").count():
            await self.locator.locator("nav.tabs a").nth(_TABS - 1).click()
        await self.locator.locator(f"nav.tabs a[href^='/{PATH}/{view}']").last.click()
        await expect(self.locator.locator("nav.tabs a[aria-current=page]").last).to_have_attribute(
            "href", re.compile(f"/{view}")
        )
        await self.loaded()

    async def loaded(self) -> None:
        """Wait until the view has loaded."""
        await expect(self.main.and_(self.page.locator("[aria-busy=false]"))).to_be_visible(timeout=_TIMEOUT_MS)

    async def press(self, name: str) -> None:
        """Press a button by its whole name."""
        await self.locator.get_by_role("button", name=name, exact=True).first.click()

    async def answer(self, button: str, text: str | None = None) -> None:
        """Enter a text, if there is one, into the question that is open, and press one of its buttons."""
        if text is not None:
            await self.dialog.locator("input").fill(text)
        await self.dialog.get_by_role("button", name=button, exact=True).click()

    async def done(self, text: str) -> None:
        """Wait until the status line says so, and the view has loaded again."""
        await expect(self.status).to_have_text(text, timeout=_TIMEOUT_MS)
        await self.loaded()

    async def used_tokens(self) -> int:
        """Return the number of tokens that the bar says are used."""
        label = await self.locator.locator(".bar-box").get_attribute("aria-label")
        used, *_ = re.findall(r"[\d,]+", label or "")
        return int(used.replace(",", ""))

    async def exchanges_above_the_line(self) -> list[str]:
        """Return the questions of the exchanges above the line of the next trim, or nothing if there is no line."""
        texts: list[str] = await self.exchanges.evaluate_all(
            """exchanges => {
                const line = exchanges[0]?.parentElement.querySelector(".trim-line");
                const isAbove = each => line?.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING;
                return exchanges.filter(isAbove).map(each => each.querySelector(".said").textContent);
            }"""
        )
        return texts

    async def said(self) -> list[str]:
        """Return the questions of the exchanges, oldest first."""
        return await self.exchanges.locator(".said").all_text_contents()

    @property
    def exchanges(self) -> Locator:
        """The exchanges of the open conversation."""
        return self.locator.locator("ol.items > li:not(:has(> .trim-line))")

    @property
    def dialog(self) -> Locator:
        """The open question."""
        return self.locator.locator("dialog")

    def fact(self, text: str) -> Locator:
        """Return the fact with this text."""
        return self.main.locator("li").filter(has_text=text)

    async def open_fact(self, text: str) -> Locator:
        """Open the details of the fact with this text, and return it."""
        await self.fact(text).locator("summary").click()
        return self.fact(text)

    async def open_turn(self, said: str) -> None:
        """Open the details of the newest turn in which this was said."""
        await self.main.locator(".turn").filter(has_text=said).first.click()
        await expect(self.main.locator(".details")).to_be_visible()

    async def open_all(self) -> None:
        """Open all that the view has closed."""
        await self.main.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
        await expect(self.main).not_to_contain_text("Please wait")

    async def settle(self) -> None:
        """Wait until two frames are drawn, and the transitions of colours have ended."""
        await self.page.evaluate(
            """async () => {
                const frame = () => new Promise(requestAnimationFrame);
                await frame();
                await frame();
                await Promise.allSettled(document.getAnimations().map(each => each.finished));
            }"""
        )

    async def find_wide(self) -> list[str]:
        """Return the elements that reach beyond the sides of the screen."""
        wide: list[str] = await self.locator.evaluate(_FIND_WIDE)
        return wide

    async def find_tall(self) -> list[str]:
        """Return the height of the document if it is larger than the screen. Only the view itself scrolls."""
        height, screen = await self.page.evaluate("[document.scrollingElement.scrollHeight, innerHeight]")
        return [f"the page is {height} high"] if height > screen + 1 else []

    async def find_cut_rings(self) -> list[str]:
        """Return the controls whose focus ring is cut off at a side."""
        # The browser draws the rings if the keyboard was used last.
        await self.page.keyboard.press("Tab")
        found = await self.locator.evaluate(_FIND_CUT_RINGS)
        assert found["count"] >= _TABS, "this view has no tabs"
        cut: list[str] = found["cut"]
        return cut

    async def find_faint(self) -> list[str]:
        """Return the visible texts whose contrast is below AA of WCAG 2.2."""
        found = await self.locator.evaluate(_FIND_FAINT_TEXTS)
        assert found["count"] > 10, "this view has hardly any text"
        faint: list[str] = found["faint"]
        return faint

    async def find_nameless(self) -> list[str]:
        """Return the controls and pictures without a name in the browser's accessibility tree, by their role."""
        session = await self.page.context.new_cdp_session(self.page)
        found = await session.send("Runtime.evaluate", {"expression": _DEEP_QUERY})
        root = await session.send("DOM.describeNode", {"objectId": found["result"]["objectId"]})
        nodes = (await session.send("Accessibility.getFullAXTree"))["nodes"]
        await session.detach()
        inside = [*_descend(nodes, root["node"]["backendNodeId"])]
        controls = [each for each in inside if each.get("role", {}).get("value") in _CONTROLS]
        assert len(controls) > _TABS, "the tree of the page has hardly any control"
        return [each["role"]["value"] for each in controls if not each.get("name", {}).get("value", "").strip()]


# Selectors of the browser's own do not reach into shadow roots.
_DEEP_QUERY = f"""(function find(root) {{
  for (const element of root.querySelectorAll("*")) {{
    const found = element.localName === "{PATH}-panel" ? element : element.shadowRoot && find(element.shadowRoot);
    if (found) return found;
  }}
}})(document)"""


def _descend(nodes: list[dict[str, Any]], root: int) -> Iterable[dict[str, Any]]:
    """Yield the visible nodes of an accessibility tree below the one of an element."""
    by_id = {each["nodeId"]: each for each in nodes}
    waiting = [each["nodeId"] for each in nodes if each.get("backendDOMNodeId") == root]
    while waiting:
        node = by_id.get(waiting.pop())
        if node is not None:
            waiting += node.get("childIds", ())
            if not node["ignored"]:
                yield node


_SHOW_MESSAGE = """() => document.querySelector("home-assistant").dispatchEvent(
  new CustomEvent("hass-notification", { detail: { message: "A message" } })
)"""


class Visibility:
    """The tab of the page, which a person hides and shows again; its clock can be put forward."""

    def __init__(self, page: Page) -> None:
        """Store the page."""
        self._page = page

    async def install(self) -> None:
        """Make the clock adjustable. Call this before the page is opened."""
        await self._page.clock.install()

    async def hide(self, minutes: int) -> None:
        """Hide the tab, and let the minutes pass."""
        # The frontend stops all downloads when it suspends itself, also that of the message that it shows next.
        await self._page.evaluate(_SHOW_MESSAGE)
        await self._page.get_by_text("A message").first.wait_for()
        await self._show("hidden")
        # The frontend waits for a frame before it starts its timer.
        await asyncio.sleep(0.5)
        await self._page.clock.fast_forward(minutes * 60_000)

    async def show(self) -> None:
        """Show the tab again."""
        await self._show("visible")

    async def _show(self, state: str) -> None:
        await self._page.evaluate(
            """state => {
                Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
                Object.defineProperty(document, "hidden", { value: state === "hidden", configurable: true });
                document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )


class DashboardEditor:
    """A dashboard that is being edited, with Home Assistant's dialog that offers cards."""

    def __init__(self, page: Page) -> None:
        """Store the page; `open` opens the dashboard."""
        self.page = page
        self.card = page.locator(f"hui-view {PATH}-card")

    async def open(self, url: str, path: str) -> None:
        """Go to a dashboard and edit it."""
        await self.page.goto(f"{url}/{path}/0?edit=1")
        await self.page.locator("hui-section").first.wait_for()

    async def add_card(self, name: str) -> None:
        """Add the card that the dialog finds under a name, save it, and end the editing."""
        await self.page.get_by_role("button", name="Add card").first.click()
        dialog = self.page.locator("hui-dialog-create-card")
        await dialog.get_by_role("tab").filter(has_text="By card").click()
        await dialog.locator("hui-card-picker input").first.fill(name)
        offered = dialog.locator("hui-card-picker .card").filter(has=self.page.locator(f"{PATH}-card"))
        await offered.locator(".overlay").click()
        await self.page.locator("hui-dialog-edit-card").get_by_role("button", name="Save").click()
        await self.page.get_by_role("button", name="Done").click()
