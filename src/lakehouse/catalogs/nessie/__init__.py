"""The Nessie catalog: branches, tags and history are Nessie's own; tables are found by the pointers that it keeps.

Everything goes through Nessie's API v2 and none of our writes through its Iceberg REST endpoint, which forgets all snapshots
of a table but the newest and lets two first writers overwrite each other (docs/decisions/0014-four-kinds-of-catalog.md).
"""

from lakehouse.catalogs.nessie.catalog import NessieCatalog

__all__ = ["NessieCatalog"]
