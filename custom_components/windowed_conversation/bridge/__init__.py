"""Translation between Home Assistant's types and ours, one subject in each module.

The chat log, local intents, LLM tools, errors and spoken texts, and the files under `.storage`.
"""
