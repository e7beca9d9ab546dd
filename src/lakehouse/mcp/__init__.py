"""A lake for AI agents, by the Model Context Protocol: `lake mcp` over standard input and output, `/mcp` of the service over HTTP.

The server calls the interface that a lake of this machine and a lake behind a service have in common. Over HTTP it is a
client of the service with the key of the caller, so that the rights, limits and log of that key hold for it.
"""
