"""The web console: server-rendered pages over the answers of the service's routes (http/routes/console.py)."""
