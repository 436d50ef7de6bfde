"""Compiled kernels. They hold no policy, allocate nothing in a step and draw no random number."""
