"""Reminders, their recurrence, their rows, and the times that sentences name. Standard library and the store only."""
