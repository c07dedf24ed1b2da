"""The first local command after a start of Home Assistant beside the second one.

    .venv/demo/bin/python -m benchmarks.first_command

The demo home is started again and again. After each start, two commands are sent over the websocket, one after the
other. The ratio of their medians is more reliable than the milliseconds.
"""

import argparse
import asyncio
from pathlib import Path
from statistics import median
import tempfile
import time

from benchmarks.turn import run_model_server
from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.setup_agent import ModelAccess, replace_accounts

_COMMANDS = ("turn on the kitchen light", "turn off the kitchen light")


async def _measure_command(client: Client, agent_id: str, text: str) -> float:
    """Return the milliseconds that a local command takes."""
    began = time.perf_counter()
    answer = await client.send_command("conversation/process", text=text, agent_id=agent_id)
    took = (time.perf_counter() - began) * 1e3
    if answer["response"]["response_type"] != "action_done":
        raise SystemExit("the command was not understood")
    return took


async def _run_benchmark(starts: int, wait: float) -> None:
    times: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with run_model_server() as url:
            home = HomeAssistantProcess(Path(folder), find_free_port())
            async with home, Client(home.url, await log_in_or_onboard(home.url, "bench", "bench")) as client:
                await client.wait_until_running()
                await set_up_home(client)
                agent_id = (await replace_accounts(client, ModelAccess(url=url, model="scripted"))).agent_id
            for number in range(starts):
                async with home, Client(home.url, await log_in_or_onboard(home.url, "bench", "bench")) as client:
                    await client.wait_until_running()
                    await asyncio.sleep(wait)
                    times.append(tuple([await _measure_command(client, agent_id, text) for text in _COMMANDS]))
                print(f"start {number + 1:>3}: " + ", ".join([f"{each:.1f} ms" for each in times[-1]]), flush=True)
    first, second = (median(each) for each in zip(*times, strict=True))
    print(f"medians: {first:.1f} ms and {second:.1f} ms, ratio {first / second:.2f}")


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="The first local command after a start beside the second one.")
    parser.add_argument("--starts", type=int, default=20, help="starts of Home Assistant")
    parser.add_argument("--wait", type=float, default=3.0, help="seconds between the start and the first command")
    arguments = parser.parse_args()
    asyncio.run(_run_benchmark(arguments.starts, arguments.wait))


if __name__ == "__main__":
    main()
