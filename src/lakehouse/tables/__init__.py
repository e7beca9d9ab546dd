"""The tables of a lake, whatever their format: find, compare, export and report them."""
