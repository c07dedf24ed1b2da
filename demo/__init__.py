"""The demo: a home to talk to, and a scripted model that answers."""
