"""The demo: a simulated home to talk to, and a scripted model that answers."""
