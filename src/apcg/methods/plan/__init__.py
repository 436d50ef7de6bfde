"""The default method, auto: what it costs, what it chooses, when it changes."""
