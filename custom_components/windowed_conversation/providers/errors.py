"""All errors of a request to a model.

Messages are for the log: they never contain words of a conversation, nor a key. Users get a translated text.
"""

# The maximum length of an address that a server names, in characters.
_LONGEST_ADDRESS = 200


class ProviderError(Exception):
    """A request to a model failed.

    `is_unexplained`: a `BadRequest` or an `Unavailable` without a known reason, so that the length of the request may
    be the reason.
    """

    def __init__(self, *message: str, is_unexplained: bool = False) -> None:
        super().__init__(*message)
        self.is_unexplained = is_unexplained


class AuthError(ProviderError):
    """The key is wrong or lacks a permission."""


class QuotaError(ProviderError):
    """The account's credit is used up."""


class RateLimited(ProviderError):
    """Too many requests. `retry_after` is in seconds, or None if the server does not say."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContextOverflow(ProviderError):
    """The request is longer than the model can read: `context_tokens`, or None if the server does not say."""

    def __init__(self, message: str, context_tokens: int | None = None) -> None:
        super().__init__(message)
        self.context_tokens = context_tokens


class Refused(ProviderError):
    """The model or a filter declined. `reason` is the provider's own code, or empty."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Incomplete(ProviderError):
    """The answer was cut off at a length limit."""


class Unavailable(ProviderError):
    """No connection, or the server has a problem. `has_answered`: the server, or a proxy before it, says so itself."""

    def __init__(self, *message: str, is_unexplained: bool = False, has_answered: bool = False) -> None:
        super().__init__(*message, is_unexplained=is_unexplained)
        self.has_answered = has_answered


class DeadlineExceeded(ProviderError):
    """No part of the answer arrived in time."""


# The errors of a server that cannot be reached.
CONNECTION_ERRORS = (Unavailable, DeadlineExceeded)


class BadRequest(ProviderError):
    """The server does not accept the request: a wrong URL, a wrong parameter."""


class ModelNotFound(BadRequest):
    """The server has no such model or deployment."""


class Redirected(BadRequest):
    """The server has moved. Redirects are not followed: the key is meant for the server that the user entered."""

    def __init__(self, address: str) -> None:
        """Store the new address, which is for the user: in the log it would be words of the server's own."""
        self.address = address[:_LONGEST_ADDRESS]
        super().__init__("the server redirects")


class BadStream(ProviderError):
    """The answer could not be read, or ended without its terminal marker."""
