"""An agent at run time: what it counts and keeps beside its windows."""
