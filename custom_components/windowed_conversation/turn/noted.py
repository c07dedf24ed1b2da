"""What a window notes of the home with the result of a tool."""

from collections.abc import Collection, Mapping

from .home import EntityState


def noted(
    entities: Mapping[str, EntityState], known: Mapping[str, str], acted_on: Collection[str], listed: Collection[str]
) -> dict[str, str]:
    """Return what a window notes of the home with a tool's result.

    `known` is what the window has said so far. The call says what a tool has changed; what one has `listed` is in its
    result, of which only a stub may stay. Whatever else has changed may have been said by any tool.
    """
    states = {}
    for key in {*known, *acted_on, *listed}.intersection(entities):
        entity, before = entities[key], known.get(key, entities[key].told)
        is_new = entity.told != before
        if is_new or key in acted_on or key in listed:
            is_same = before.rpartition("=")[0] == entity.told.rpartition("=")[0]
            is_sure = is_new == (key in acted_on) and is_same and before != entity.doubtful
            states[key] = entity.told if is_sure else entity.doubtful
    return states
