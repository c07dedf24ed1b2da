"""Reminders: a to-do list whose items are spoken when they are due."""
