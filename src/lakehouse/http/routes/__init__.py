"""The routes of the service: each module parses a request, calls the lake and answers in JSON."""
