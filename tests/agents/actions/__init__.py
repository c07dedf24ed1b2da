"""Tests for the integration's actions."""
