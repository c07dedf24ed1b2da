"""Translation between Home Assistant's types and the integration's own, one subject in each module.

The subjects are the chat log, LLM tools, errors and spoken texts, and the files under `.storage`.
"""
