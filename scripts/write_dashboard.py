"""Write the demo's dashboard to docs/dashboard.md, for one agent: .venv/test/bin/python -m scripts.write_dashboard."""

import json
from pathlib import Path
import re
from typing import Any

from homeassistant.util import slugify
from homeassistant.util.yaml import dump

from custom_components.windowed_conversation.sensor import COST_SENSORS, SENSORS
from demo.dashboard import build_views

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "dashboard.md"
AGENT = "openai_conversation"
_TRANSLATIONS_FILE = REPOSITORY / "custom_components" / "windowed_conversation" / "translations" / "en.json"
_BLOCK = re.compile(r"(?<=^```yaml\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def build_dashboard() -> dict[str, Any]:
    """Return the dashboard for an agent that has the sensors that are enabled by default, and no other one."""
    texts = json.loads(_TRANSLATIONS_FILE.read_text(encoding="utf-8"))["entity"]["sensor"]
    enabled = [each.key for each in (*SENSORS, *COST_SENSORS) if each.entity_registry_enabled_default]
    sensors = {key: f"sensor.{AGENT}_{slugify(texts[key]['name'])}" for key in enabled}
    # A copy through JSON has no shared values, for which YAML would write anchors.
    dashboard: dict[str, Any] = json.loads(json.dumps({"views": build_views(sensors, is_demo=False)}))
    return dashboard


def main() -> None:
    """Replace the YAML on the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BLOCK.sub(lambda _: dump(build_dashboard()), page), encoding="utf-8")


if __name__ == "__main__":
    main()
