"""Everything that can go wrong between us and a model, in one tree.

    ProviderError
    +-- AuthError            the key is wrong or may not do this
    +-- QuotaError           no credit left
    +-- RateLimited          too many requests: `retry_after` in seconds, where the server says
    +-- ContextOverflow      the request is longer than the model can read: `context_tokens`, if the server says
    +-- Refused              the model or a filter declined
    +-- Incomplete           the answer was cut off at a length limit
    +-- Unavailable          no connection, or the server is in trouble
    +-- DeadlineExceeded     nothing came in time
    +-- BadRequest           the server does not accept what it was sent (a wrong address, a wrong parameter)
    |   +-- ModelNotFound    the server has no such model or deployment
    |   +-- Redirected       the server has another address: `address`
    +-- BadStream            the answer could not be read, or ended without its terminal marker

`is_unexplained` is true for a `BadRequest` or an `Unavailable` of which the server says nothing that we know, so that
the length of the request may be its reason.

Messages are for the log: they never hold what people said, nor a key. What a person is told is a translation.
"""

# Characters of an address that a server names.
_LONGEST_ADDRESS = 200


class ProviderError(Exception):
    """A request to a model failed; `is_unexplained` if the server gave no reason that we know."""

    def __init__(self, *message: str, is_unexplained: bool = False) -> None:
        """Keep whether the server gave a reason."""
        super().__init__(*message)
        self.is_unexplained = is_unexplained


class AuthError(ProviderError):
    """The key is wrong or may not do this."""


class QuotaError(ProviderError):
    """No credit left."""


class RateLimited(ProviderError):
    """Too many requests; `retry_after` is in seconds, None where the server does not say."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        """Keep the delay that the server asked for."""
        super().__init__(message)
        self.retry_after = retry_after


class ContextOverflow(ProviderError):
    """The request is longer than the model can read: `context_tokens`, None where the server does not say."""

    def __init__(self, message: str, context_tokens: int | None = None) -> None:
        """Keep the size that the server named."""
        super().__init__(message)
        self.context_tokens = context_tokens


class Refused(ProviderError):
    """The model or a filter declined; `reason` is the provider's own code for why, empty where it gives none."""

    def __init__(self, message: str, reason: str = "") -> None:
        """Keep the reason that the provider gave."""
        super().__init__(message)
        self.reason = reason


class Incomplete(ProviderError):
    """The answer was cut off at a length limit."""


class Unavailable(ProviderError):
    """No connection, or the server is in trouble."""


class DeadlineExceeded(ProviderError):
    """Nothing came in time."""


# Of a server that cannot be asked at all.
AWAY = (Unavailable, DeadlineExceeded)


class BadRequest(ProviderError):
    """The server does not accept what it was sent."""


class ModelNotFound(BadRequest):
    """The server has no such model or deployment."""


class Redirected(BadRequest):
    """The server has another address. It is not followed: the key is for the one that the user entered."""

    def __init__(self, address: str) -> None:
        """Keep the new address, without its query, which may say more than where the server is."""
        self.address = address[:_LONGEST_ADDRESS]
        super().__init__(f"the server redirects to {self.address}")


class BadStream(ProviderError):
    """The answer could not be read, or ended without its terminal marker."""
