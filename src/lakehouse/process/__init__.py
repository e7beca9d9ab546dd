"""Processes: locks, HTTP over Unix sockets, detached children, ports."""
