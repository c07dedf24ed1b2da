"""The listed models that can hold a conversation, and the one to recommend, decided by name."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
import re

from .profiles import Vendor

# Separates the words of a name, or stands at its ends.
_START, _END = r"(?:^|[^a-z0-9])", r"(?:$|[^a-z])"


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(f"{_START}(?:{'|'.join(words)}){_END}")


# Models for other things than conversations, anywhere: they write vectors, speech, pictures, or verdicts.
_OF_ANYBODY = _words(
    r"all-mpnet|bge|colbert|e5|\w*embed\w*|gte|\w*minilm|paraphrase|\w*rerank\w*|splade",
    r"audio|bark|kokoro|lyria|orpheus|parakeet|piper|realtime|transcribe|\w*tts|\w*whisper",
    r"dall-e|flux|\w*image\w*|imagen|nano-banana|sd|sdxl|sora|stable-?diffusion|veo",
    r"aqa|babbage|computer-use|davinci|deep-research|\w*guard|\w*guardian|moderation|\w*ocr|shieldgemma",
)
# And a vendor's. Models that take no instructions or no tools are among them, as in Home Assistant's own integrations:
# components/openai_conversation/const.py and components/google_generative_ai_conversation/config_flow.py, 2026.11.
_NOT_FOR_CONVERSATIONS = {
    Vendor.OPENAI: _words("instruct|live|o1-mini|o1-preview|research|search|vision"),
    Vendor.GOOGLE: _words("live|research|robotics|vision"),
}
# The beginnings of a vendor's names on a server that has models of several. "Instruct" says nothing in other names.
_BEGINNINGS = {Vendor.OPENAI: re.compile(r"(?:chat)?gpt-\d|o\d"), Vendor.GOOGLE: re.compile("gemini")}

# A vendor's families, smallest first: fast and cheap enough for a voice assistant. Of a family the newest counts.
_GPT = r"gpt-\d+(?:\.\d+)?"
_GEMINI = r"gemini-(?:\d+(?:\.\d+)?-)?"
_RECOMMENDED: dict[Vendor, tuple[str, ...]] = {
    Vendor.OPENAI: (rf"{_GPT}o?-(?:mini|luna)", rf"{_GPT}-nano", rf"{_GPT}(?:o|-terra)?", rf"{_GPT}-sol", r"o\d-mini"),
    Vendor.ANTHROPIC: tuple(rf"claude-(?:[\d.-]*{name}|{name}[\d.-]*)" for name in ("haiku", "sonnet", "opus")),
    Vendor.GOOGLE: tuple(rf"{_GEMINI}{name}(?:-latest)?" for name in ("flash-lite", "flash", "pro")),
}

# Of several vendors first the smallest of each.
_OF_ALL_VENDORS = tuple(names for size in zip_longest(*_RECOMMENDED.values()) for names in size if names)

_SNAPSHOT = re.compile(r"-(?:\d{3,4}|\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_UNSTABLE = _words(r"alpha", r"beta", r"exp", r"experimental", r"preview")


def conversation_models(vendor: Vendor | None, names: Iterable[str]) -> list[str]:
    """Return the models that can hold a conversation, in the order of the list; all if none has a name of one."""
    listed = list(names)
    return [name for name in listed if _converses(vendor, name.lower())] or listed


def recommended_model(vendor: Vendor | None, names: Sequence[str]) -> str | None:
    """Return the model to suggest: the newest of a vendor's smallest family, or else the first; None for an empty list.

    Without a vendor, those of all vendors count. Previews come last, and a model's plain name before its snapshots.
    """
    families = _RECOMMENDED[vendor.maker] if vendor else _OF_ALL_VENDORS
    return min(names, key=lambda name: _rank(families, name.lower()), default=None)


def _converses(vendor: Vendor | None, name: str) -> bool:
    maker = vendor.maker if vendor else _maker(_plain(name))
    of_the_vendor = _NOT_FOR_CONVERSATIONS.get(maker) if maker else None
    return not (_OF_ANYBODY.search(name) or (of_the_vendor and of_the_vendor.search(name)))


def _maker(name: str) -> Vendor | None:
    return next((maker for maker, beginning in _BEGINNINGS.items() if beginning.match(name)), None)


def _plain(name: str) -> str:
    """Return a name without the vendor's, which routers put before it, and without a folder."""
    return name.rpartition("/")[2]


def _rank(families: Sequence[str], name: str) -> tuple[bool, int, tuple[int, ...], bool]:
    own = _plain(name)
    plain = _SNAPSHOT.sub("", own)
    unstable = bool(_UNSTABLE.search(plain))
    family = next((place for place, names in enumerate(families) if re.fullmatch(names, plain)), len(families))
    if family == len(families):
        return unstable, family, (), False
    return unstable, family, _newest_first(plain), plain != own


def _newest_first(name: str) -> tuple[int, ...]:
    major, minor, *_ = (*(int(number) for number in re.findall(r"\d+", name)), 0, 0)
    return -major, -minor
