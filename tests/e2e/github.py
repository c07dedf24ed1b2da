"""A fake of the parts of GitHub and the Marketplace's catalog that the Marketplace requests for this repository.

It serves the repository's current files. There is no release, so the Marketplace uses the default branch.
"""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
import json
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any, Self
from zipfile import ZipFile

from aiohttp import web

from demo.home_assistant import REPOSITORY

INTEGRATION = "custom_components/windowed_conversation"
MANIFEST: Mapping[str, Any] = json.loads((REPOSITORY / INTEGRATION / "manifest.json").read_text())
ADDRESS = MANIFEST["documentation"]

_OWNER, _NAME = ADDRESS.split("/")[-2:]
_COMMIT_SHA = "c0ffee" + "0" * 34
_REPOSITORY = {
    "id": 1_000_001,
    "name": _NAME,
    "full_name": f"{_OWNER}/{_NAME}",
    "owner": {"login": _OWNER},
    "default_branch": "main",
    "description": "What the Marketplace shows beside the name.",
    "archived": False,
    "fork": False,
    "has_issues": True,
    "open_issues_count": 0,
    "stargazers_count": 0,
    "topics": [],
    "pushed_at": "2026-11-22T00:00:00Z",
}
_DEVICE = {
    "device_code": "device",
    "user_code": "ABCD-1234",
    "verification_uri": "https://github.com/login/device",
    "expires_in": 900,
    "interval": 1,
}
_TOKEN = {"access_token": "token", "token_type": "bearer", "scope": ""}


def files() -> dict[str, bytes]:
    """Return the contents of those files in the repository that the Marketplace reads, by path."""
    found = [REPOSITORY / "hacs.json", REPOSITORY / "README.md", *(REPOSITORY / INTEGRATION).rglob("*")]
    return {
        str(path.relative_to(REPOSITORY)): path.read_bytes()
        for path in found
        if path.is_file() and path.parent.name != "__pycache__"
    }


class FakeGitHub:
    """A server on loopback that stands in for several hosts, each under its name; entering the context starts it."""

    def __init__(self) -> None:
        self._files = files()
        api, raw = f"/api.github.com/repos/{_OWNER}/{_NAME}", f"/raw.githubusercontent.com/{_OWNER}/{_NAME}"
        app = web.Application()
        app.router.add_routes(
            [
                web.post("/github.com/login/device/code", _always(_DEVICE)),
                web.post("/github.com/login/oauth/access_token", _always(_TOKEN)),
                web.get(f"/github.com/{_OWNER}/{_NAME}/archive/{{ref:.*}}", self._archive),
                web.get(api, _always(_REPOSITORY)),
                web.get(f"{api}/releases", _always([])),
                web.get(f"{api}/branches/main", _always({"name": "main", "commit": {"sha": _COMMIT_SHA}})),
                web.get(f"{api}/git/trees/{{ref}}", self._tree),
                web.get(f"{api}/contents/{{path:.*}}", self._content),
                web.get(f"{raw}/{{ref}}/{{path:.*}}", self._raw),
                web.get("/data-v2.hacs.xyz/{list:removed|critical}/data.json", _always([])),
                web.get("/data-v2.hacs.xyz/{category}/data.json", _always({})),
            ]
        )
        self._runner = web.AppRunner(app)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _archive(self, request: web.Request) -> web.Response:
        archive = BytesIO()
        with ZipFile(archive, "w") as writer:
            for path, content in self._files.items():
                writer.writestr(f"{_NAME}-main/{path}", content)
        return web.Response(body=archive.getvalue(), content_type="application/zip")

    async def _tree(self, request: web.Request) -> web.Response:
        folders = {str(parent) for path in self._files for parent in PurePosixPath(path).parents} - {"."}
        tree = [_entry("tree", path) for path in sorted(folders)] + [_entry("blob", path) for path in self._files]
        return web.json_response({"sha": _COMMIT_SHA, "url": "", "tree": tree, "truncated": False})

    async def _content(self, request: web.Request) -> web.Response:
        content = b64encode(self._found(request)).decode()
        return web.json_response({"type": "file", "encoding": "base64", "content": content})

    async def _raw(self, request: web.Request) -> web.Response:
        return web.Response(body=self._found(request))

    def _found(self, request: web.Request) -> bytes:
        path = request.match_info["path"]
        if path not in self._files:
            raise web.HTTPNotFound
        return self._files[path]


def _always(answer: Any) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(answer)

    return handler


def _entry(kind: str, path: str) -> dict[str, str]:
    return {"type": kind, "path": path, "mode": "100644", "sha": _COMMIT_SHA, "url": ""}
