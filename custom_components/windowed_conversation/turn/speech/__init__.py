"""The spoken part of a model's text: without reasoning, calls, and notes."""
