"""The files of this repository that tests look into."""

import json
from pathlib import Path

from homeassistant.util.yaml import load_yaml_dict

from custom_components.windowed_conversation.const import DOMAIN

REPOSITORY = Path(__file__).parent.parent
PACKAGE = REPOSITORY / "custom_components" / DOMAIN

MANIFEST = json.loads((PACKAGE / "manifest.json").read_text())
TEXTS = json.loads((PACKAGE / "translations" / "en.json").read_text())
ICONS = json.loads((PACKAGE / "icons.json").read_text())
ACTIONS = load_yaml_dict(str(PACKAGE / "services.yaml"))
