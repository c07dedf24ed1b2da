"""The integration's actions. Each module defines some, with their schemas, in a table named `ACTIONS`."""
