"""Tests for the routing of sentences: to Home Assistant's intents or to the model."""
