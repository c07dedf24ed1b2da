"""`python -m demo.model_server`: print the base URLs, and serve until interrupted or terminated.

The first line is only OpenAI's base URL, for programs; each later line names its provider.
"""

import argparse
import asyncio
import errno
import signal
import sys

from .faults import FAULTS
from .phrases import EXAMPLE_PHRASES
from .server import ModelServer
from .settings import DEFAULT_MODEL
from .shapes import SHAPES


def _format_table(entries: dict[str, str]) -> str:
    width = max(map(len, entries))
    return "\n".join(f"  {name:<{width}}  {about}" for name, about in entries.items())


def _format_faults() -> str:
    return _format_table({name: fault.description for name, fault in FAULTS.items()})


class _ListFaultsAction(argparse.Action):
    """Prints the list of faults and exits, as `--version` does with a version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(_format_faults())
        parser.exit()


def _build_parser() -> argparse.ArgumentParser:
    tables = {
        "what to say": _format_table({f'"{phrase}"': shows for phrase, shows in EXAMPLE_PHRASES}),
        "shapes": _format_table(SHAPES),
        "faults": _format_faults(),
        "a model id names shapes and a fault": f"  {DEFAULT_MODEL}+ollama+think_tags+429",
    }
    parser = argparse.ArgumentParser(
        prog="python -m demo.model_server",
        description="A scripted model that speaks the formats of OpenAI, Azure OpenAI, Anthropic and Gemini.",
        epilog="\n\n".join(f"{title}:\n{table}" for title, table in tables.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free port (default)")
    parser.add_argument("--key", help="answer 401 to any other key")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each word (default 0)")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer (default 0)")
    parser.add_argument("--strict", action="store_true", help="answer 400 to a request that breaks an ordering rule")
    parser.add_argument("--shape", dest="shapes", metavar="SHAPE", action="append", default=[], help="may be repeated")
    parser.add_argument(
        "--model", dest="models", metavar="MODEL", action="append", default=[], help="offered ids; may be repeated"
    )
    parser.add_argument(
        "--faults", action=_ListFaultsAction, nargs=0, default=argparse.SUPPRESS, help="list the faults and end"
    )
    parser.add_argument("--context-size", type=int, metavar="TOKENS", help="tokens; a longer request is answered 400")
    return parser


async def _serve(server: ModelServer) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with server:
        # Programs need to read only this first line.
        print(server.url, flush=True)
        for name, url in (
            ("Anthropic", server.anthropic_url),
            ("Gemini", server.gemini_url),
            ("Azure", server.azure_url),
        ):
            print(f"{name}: {url}", flush=True)
        await stop.wait()


def main() -> int:
    """Run the server and return the exit code."""
    parser = _build_parser()
    options = vars(parser.parse_args())
    options["shapes"] = tuple(options["shapes"])
    options["models"] = tuple(options["models"]) or (DEFAULT_MODEL,)
    try:
        server = ModelServer(**options)
    except ValueError as error:
        parser.error(str(error))
    try:
        asyncio.run(_serve(server))
    except (OSError, OverflowError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "is in use: choose another with --port" if in_use else f"cannot be used: {str(error).rstrip('.')}"
        print(f"Port {options['port']} on {options['host']} {reason}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
