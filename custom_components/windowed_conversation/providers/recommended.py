"""The listed models that can hold a conversation, and the one to recommend, decided by name."""

from collections.abc import Iterable, Sequence
import re

from .profiles import Vendor

# Separates the words of a name, or stands at its ends.
_START, _END = r"(?:^|[^a-z0-9])", r"(?:$|[^a-z])"


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(f"{_START}(?:{'|'.join(words)}){_END}")


# Models for other things than conversations, anywhere.
_OF_ANYBODY = _words(
    r"audio|bge|dall-e|embed\w*|flux|\w*image\w*|imagen|\w*minilm|moderation|realtime|rerank\w*|sora|stable-diffusion",
    r"transcribe|tts|veo|whisper",
)
# And a vendor's. Models that take no instructions or no tools are among them, as in Home Assistant's own integrations:
# components/openai_conversation/const.py and components/google_generative_ai_conversation/config_flow.py, 2026.11.
_NOT_FOR_CONVERSATIONS = {
    Vendor.OPENAI: _words("babbage|computer-use|davinci|instruct|live|o1-mini|o1-preview|research|search|vision"),
    Vendor.GOOGLE: _words("aqa|computer-use|live|lyria|nano-banana|research|robotics|vision"),
}

# A vendor's families, smallest first: fast and cheap enough for a voice assistant. Of a family the newest counts.
_GPT = r"gpt-\d+(?:\.\d+)?"
_GEMINI = r"gemini-(?:\d+(?:\.\d+)?-)?"
_FAMILIES: dict[Vendor, tuple[str, ...]] = {
    Vendor.OPENAI: (rf"{_GPT}o?-(?:mini|luna)", rf"{_GPT}-nano", rf"{_GPT}(?:o|-terra)?", rf"{_GPT}-sol", r"o\d-mini"),
    Vendor.ANTHROPIC: tuple(rf"claude-(?:[\d-]*{name}|{name}[\d-]*)" for name in ("haiku", "sonnet", "opus")),
    Vendor.GOOGLE: tuple(rf"{_GEMINI}{name}(?:-latest)?" for name in ("flash-lite", "flash", "pro")),
}

_SNAPSHOT = re.compile(r"-(?:\d{3,4}|\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_UNSTABLE = _words(r"alpha", r"beta", r"exp", r"experimental", r"preview")


def conversation_models(vendor: Vendor | None, names: Iterable[str]) -> list[str]:
    """Return the models that can hold a conversation, in the order of the list."""
    return [name for name in names if _converses(vendor, name.lower())]


def recommended_model(vendor: Vendor | None, names: Sequence[str]) -> str | None:
    """Return the model to suggest: the newest of a vendor's smallest family, or else the first; None for an empty list.

    Previews come last, and a model's plain name before its snapshots.
    """
    families = _FAMILIES[vendor.maker] if vendor else ()
    return min(names, key=lambda name: _rank(families, name.lower()), default=None)


def _converses(vendor: Vendor | None, name: str) -> bool:
    of_the_vendor = _NOT_FOR_CONVERSATIONS.get(vendor.maker) if vendor else None
    return not (_OF_ANYBODY.search(name) or (of_the_vendor and of_the_vendor.search(name)))


def _rank(families: Sequence[str], name: str) -> tuple[bool, int, tuple[int, ...], bool]:
    plain = _SNAPSHOT.sub("", name.rpartition("/")[2])
    unstable = bool(_UNSTABLE.search(plain))
    family = next((place for place, names in enumerate(families) if re.fullmatch(names, plain)), len(families))
    if family == len(families):
        return unstable, family, (), False
    return unstable, family, _newest_first(plain), plain != name


def _newest_first(name: str) -> tuple[int, ...]:
    major, minor, *_ = (*(int(number) for number in re.findall(r"\d+", name)), 0, 0)
    return -major, -minor
