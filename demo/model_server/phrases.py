"""Phrases for the scripted model, each with the ability that it demonstrates, ordered as a conversation.

Home Assistant's local intents leave all of these to the model. They handle "please switch on the kitchen light"
themselves; the model understands it anyway, for agents that do not use local intents.
"""

EXAMPLE_PHRASES: tuple[tuple[str, str], ...] = (
    ("my name is Ada", "a fact for the window"),
    ("what is my name?", "answered from the window, or from what memory recalls when the window no longer holds it"),
    ("consider that the wifi password is swordfish", "another fact for the window"),
    ("what is the wifi password?", "answered from the window or from memory"),
    ("let memory hold that the bins go out on Friday", "a fact for memory, by its tool"),
    ("when do the bins go out?", "answered from the facts in the prompt of a new conversation"),
    ("look in your memory for bins", "another tool of memory"),
    ("let memory part with the bins", "the third one"),
    ("I would like the kitchen light switched on", "calls a tool"),
    ("switch on the kitchen light and the bedroom light", "two calls at once"),
    ("is the kitchen light on? if not, switch it on", "reads a state and then acts on it"),
    ("make sure the kitchen light is on", "the same, in other words"),
    ("check the coffee machine and switch it off if it is on", "the same, the other way round"),
    ("tell me whether the kitchen light is on", "reads a state"),
    ("which devices are on?", "reads the whole home"),
    ("is there a parcel at the front door?", "looks through an exposed camera, if the agent may"),
    ("look at the clock", "a tool call without arguments, or answered from the context if no tool has the time"),
    ("quietly switch on the bedroom light", "a tool call and no word after it"),
    ("say one moment, then switch on the bedroom light", "speaks before the tool call"),
    ("think first, then switch on the bedroom light", "thinks before the tool call"),
    ("order pizza", "asks back"),
    ("a large one", "goes to the model, because it answers the model's own question"),
    ("tell me a story about the sea", "a long answer, spoken while it is still being written"),
    ("tell me a story in 1000 words", "a very long answer"),
    ("think about the weather", "thinking apart from the text, never spoken"),
    ("think out loud about pizza", "thinking between <think> tags in the text, never spoken"),
    ("what time is it where I am?", "answered from the context of the message"),
    ("which room am I in?", "answered from the context of the message"),
    ("who am I?", "answered from the window or the context"),
    ("repeat my message", "echoes the context too, which is not spoken"),
    ("what is in the picture?", "what was attached to the message: types and sizes"),
    ("how many messages do you see?", "how much of the conversation is still sent"),
    ("what did I just do?", "the newest exchange, also one that Home Assistant answered"),
    ("what did I say first?", "the oldest exchange that is still sent"),
    ("fail with 429", "an error, spoken kindly; scripts/demo --help names all kinds"),
    ("what can you do?", "this list"),
)
