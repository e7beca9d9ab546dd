"""One file a service: its version, where it comes from, how it is started and how one sees that it lives."""
