"""The demo's automation: a button asks the agent which devices are on, and the answer becomes a notification."""

from demo.client import Client
from demo.home import GOOD_NIGHT_BUTTON

_AUTOMATION_ID = "good_night"


async def save_automation(client: Client, agent_id: str) -> None:
    """Add the automation through the API of Home Assistant's editor, so that users can view and change it there."""
    ask = {
        "action": "conversation.process",
        "data": {"agent_id": agent_id, "conversation_id": "good night", "text": "Which devices are on?"},
        "response_variable": "answer",
    }
    show = {
        "action": "persistent_notification.create",
        "data": {
            "notification_id": _AUTOMATION_ID,
            "title": "Good night",
            "message": "{{ answer.response.speech.plain.speech }}",
        },
    }
    automation = {
        "alias": "Good night",
        "description": "Asks the conversation agent which devices are on.",
        "triggers": [{"trigger": "state", "entity_id": GOOD_NIGHT_BUTTON}],
        "actions": [ask, show],
    }
    await client.post(f"/api/config/automation/config/{_AUTOMATION_ID}", automation)
