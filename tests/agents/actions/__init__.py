"""Tests for the actions."""
