"""Access to files: the local folder of a lake, and object stores."""
