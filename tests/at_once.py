"""The number of concurrent requests to the scripted model."""

from demo.model_server import ModelServer


def most_at_once(server: ModelServer) -> int:
    """Return the maximum number of requests that were waiting for their first token at the same time."""
    edges = [edge for each in server.requests for edge in ((each.arrived_ns, 1), (each.first_content_ns or 0, -1))]
    at_once = [sum(change for _, change in edges if _ <= time) for time, _ in edges]
    return max(at_once)
