"""How many requests the scripted model had at a time."""

from demo.model_server import ModelServer


def most_at_once(server: ModelServer) -> int:
    """Return how many requests were waiting for their first word at a time."""
    edges = [edge for each in server.requests for edge in ((each.arrived_ns, 1), (each.first_content_ns or 0, -1))]
    at_once = [sum(change for _, change in edges if _ <= time) for time, _ in edges]
    return max(at_once)
