"""Memory for Home Assistant: the sentences that it answers itself, and the tools for models."""
