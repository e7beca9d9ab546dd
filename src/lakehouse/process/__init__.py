"""Processes on one machine: locks, sockets, detached daemons, logs, and ending a process by its pid."""
