"""The list of reminders in Home Assistant: its schedule, its delivery, and the sentences about it."""
