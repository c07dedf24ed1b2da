"""Home Assistant's types and ours: each module translates one thing, in both directions where there are two.

The chat log, local intents, LLM tools, errors and phrases, and the files under `.storage`.
"""
