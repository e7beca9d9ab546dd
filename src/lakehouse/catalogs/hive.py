"""The Hive Metastore: tables that Iceberg and Hudi keep there side by side. It has no branches.

A pointer is the parameter `metadata_location` of a table's entry. It is exchanged under the metastore's own lock, the one
that Iceberg in Spark, PyIceberg and Trino take for a commit, so that nobody's is overwritten.
"""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from lakehouse.core.errors import (
    BadSettingError,
    CatalogBusyError,
    CatalogError,
    CatalogUnreachableError,
    NotInstalledError,
    TableExistsError,
)
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.spark_catalog import spark_catalog
from lakehouse.core.unbranched import Unbranched

#: The database that dropped tables are moved to.
DROPPED = "lake__dropped"
_WAS = "lake.dropped.name"
_POINTER = "metadata_location"
_TIMEOUT_S = 60
_LOCK_TRIES, _LOCK_PAUSE_S = 300, 0.1


@dataclass(eq=False)
class HiveCatalog(Unbranched):
    """The tables of one metastore.

    Args:
        uri: where it listens, as `thrift://127.0.0.1:9083`.
        warehouse: where new tables go, as a URI.
        io: properties of PyIceberg's file access (`s3.endpoint`, …).
        spark_io: the same for Iceberg in Spark (`io-impl`, `s3.endpoint`, …).
    """

    uri: str
    warehouse: str
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # there are keys among them
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = CATALOG
    called = "The Hive Metastore"

    def __post_init__(self) -> None:
        place = urlsplit(self.uri)
        if place.scheme != "thrift" or not place.hostname or not place.port:
            raise BadSettingError(
                f"catalog.uri = {self.uri!r} is not the address of a Hive Metastore.",
                "Write it as thrift://127.0.0.1:9083.",
            )

    # ---- settings for others ------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        """What a Spark session needs to see this catalog under its name. It may hold keys."""
        facts = {
            "type": "hive",
            "uri": self.uri,
            "warehouse": self.warehouse,
            **self.spark_io,
        }
        return spark_catalog(self.name, facts)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """What `pyiceberg.catalog.load_catalog` needs. It may hold keys."""
        waits = {"lock-check-retries": "30", "lock-check-max-wait-time": "2"}  # by default it gives up after 4 looks
        return {"type": "hive", "uri": self.uri, "warehouse": self.warehouse, **waits, **self.io}

    def ready(self) -> None:
        """See that the metastore is there."""
        with self._client() as client:
            client.get_all_databases()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        """Every Iceberg table, by name."""
        return sorted(name for name, entry in self._entries() if _pointer(entry) is not None)

    def hudi_tables(self) -> dict[TableName, str]:
        """Every Hudi table that was registered here, and the folder that it lies in."""
        return {name: entry.sd.location for name, entry in self._entries() if _is_hudi(entry)}

    def pointer(self, table: TableName) -> str | None:
        """Where the newest metadata of an Iceberg table is, or None if there is no such table."""
        return self.pointers([table])[table]

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Where several tables point; those of one namespace are asked for at once, which is all that Hive can."""
        wanted = list(tables)
        found: dict[TableName, str | None] = dict.fromkeys(wanted)
        with self._client() as client:
            for namespace in dict.fromkeys(table.namespace for table in wanted):
                names = [table.table for table in wanted if table.namespace == namespace]
                for entry in _objects(client, namespace, names):
                    found[TableName(namespace, entry.tableName)] = _pointer(entry)
        return found

    def pinned(self, tables: Iterable[TableName]) -> HiveCatalog:
        """This catalog, in which these tables stay where they point now: for a statement that reads several."""
        pinned = _Pinned(self.uri, self.warehouse, self.io, self.spark_io, self.name)
        pinned.found = self.pointers(tables)
        return pinned

    def has_view(self, name: TableName) -> bool:
        """Whether the name is a view's."""
        with self._client() as client:
            entry = _entry(client, name)
        return entry is not None and entry.tableType == "VIRTUAL_VIEW"

    def ensure_namespace(self, namespace: str) -> None:
        """Make the namespace unless it is there."""
        from hive_metastore.ttypes import AlreadyExistsException, Database

        with self._client() as client:
            if namespace not in client.get_all_databases():
                place = f"{self.warehouse.rstrip('/')}/{namespace}.db"
                try:
                    client.create_database(Database(name=namespace, locationUri=place, parameters={}))
                except AlreadyExistsException:
                    return  # others made it in the same moment

    def move(self, table: TableName, start: str, end: str | None) -> bool:
        """Point a table elsewhere (or, with None, forget it), if it still points where it did."""
        with self._client() as client, _locked(client, table):
            entry = _entry(client, table)
            if entry is None or _pointer(entry) != start:
                return False
            if end is None:
                client.drop_table(table.namespace, table.table, False)
            else:
                entry.parameters.update({_POINTER: end, f"previous_{_POINTER}": start})
                _alter(client, table, entry)
        return True

    def state(self) -> str:
        """A hash of where everything points: it changes whenever anything does."""
        found = sorted((name, _pointer(entry)) for name, entry in self._entries() if _pointer(entry))
        return hashlib.sha256("\n".join(f"{name} {place}" for name, place in found).encode()).hexdigest()[:16]

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        """Move the table's entry to another database; its files stay."""
        self.ensure_namespace(DROPPED)
        with self._client() as client, _locked(client, table):
            entry = _entry(client, table)
            if entry is None or _pointer(entry) is None:
                return False
            entry.parameters[_WAS] = str(table)
            _rename(client, entry, TableName(DROPPED, f"t{time.time_ns():020}"))
        return True

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name."""
        found = max((each for each in self._dropped() if each[1] == table), default=None, key=lambda each: each[0])
        if found is None:
            return False
        with self._client() as client, _locked(client, found[0]):
            entry = _entry(client, found[0])
            if entry is None:
                return False
            if _entry(client, table) is not None:
                raise TableExistsError(
                    f"There is a table {table} again, so the dropped one cannot come back under that name.",
                    f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
                )
            entry.parameters.pop(_WAS)
            _rename(client, entry, table)
        return True

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        return sorted({was for _, was in self._dropped()})

    def _dropped(self) -> list[tuple[TableName, TableName]]:
        """Where dropped tables are, and what they were called."""
        found = []
        with self._client() as client:
            if DROPPED in client.get_all_databases():
                for entry in _objects(client, DROPPED, client.get_all_tables(DROPPED)):
                    namespace, _, table = entry.parameters.get(_WAS, "").rpartition(".")
                    found.append((TableName(DROPPED, entry.tableName), TableName(namespace, table)))
        return found

    # ---- the metastore ------------------------------------------------------------------------------------------

    def _entries(self) -> list[tuple[TableName, Any]]:
        found = []
        with self._client() as client:
            for namespace in client.get_all_databases():
                if namespace != DROPPED:
                    entries = _objects(client, namespace, client.get_all_tables(namespace))
                    found += [(TableName(namespace, entry.tableName), entry) for entry in entries]
        return found

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            from hive_metastore.ThriftHiveMetastore import Client
            from hive_metastore.ttypes import MetaException
            from thrift.protocol.TBinaryProtocol import TBinaryProtocol
            from thrift.Thrift import TException
            from thrift.transport.TSocket import TSocket
            from thrift.transport.TTransport import TBufferedTransport, TTransportException
        except ImportError as exc:
            raise NotInstalledError("the thrift client of the Hive Metastore", "iceberg") from exc
        place = urlsplit(self.uri)
        connection = TSocket(place.hostname, place.port)
        connection.setTimeout(_TIMEOUT_S * 1000)
        transport = TBufferedTransport(connection)
        try:
            transport.open()
            yield Client(TBinaryProtocol(transport))
        except (TTransportException, OSError) as exc:
            raise CatalogUnreachableError(
                f"The Hive Metastore does not answer at {self.uri}: {exc}.",
                "Start it: lake up hive (lake status shows what runs). Another address: catalog.uri.",
            ) from exc
        except MetaException as exc:
            raise CatalogError(f"The Hive Metastore at {self.uri} refused: {exc.message}", "lake logs hive") from exc
        except TException as exc:
            raise CatalogError(f"The Hive Metastore at {self.uri} failed: {exc}", "lake logs hive") from exc
        finally:
            transport.close()


class _Pinned(HiveCatalog):
    """A catalog some of whose tables stay where they pointed once."""

    found: Mapping[TableName, str | None]

    def pointer(self, table: TableName) -> str | None:
        return self.found[table] if table in self.found else super().pointer(table)


def _pointer(entry: Any) -> str | None:
    """Where an entry's Iceberg metadata is; None for a table of another format and for a view."""
    told = entry.parameters or {}
    return told.get(_POINTER) if told.get("table_type", "").upper() == "ICEBERG" else None


def _is_hudi(entry: Any) -> bool:
    told = entry.parameters or {}
    return "hudi" in (told.get("spark.sql.sources.provider", "").lower(), told.get("table_type", "").lower())


def _entry(client: Any, table: TableName) -> Any:
    return next(iter(_objects(client, table.namespace, [table.table])), None)


def _objects(client: Any, namespace: str, names: Sequence[str]) -> list[Any]:
    from hive_metastore.ttypes import UnknownDBException
    from thrift.Thrift import TApplicationException

    try:
        return list(client.get_table_objects_by_name(namespace, list(names))) if names else []
    except (UnknownDBException, TApplicationException):
        if namespace in client.get_all_databases():
            raise
        return []  # of a database that is not there, the metastore says only that something went wrong


def _alter(client: Any, table: TableName, entry: Any) -> None:
    from hive_metastore.ttypes import EnvironmentContext

    # Otherwise the metastore would list the table's folder to count its files.
    context = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
    client.alter_table_with_environment_context(table.namespace, table.table, entry, context)


def _rename(client: Any, entry: Any, to: TableName) -> None:
    start = TableName(entry.dbName, entry.tableName)
    # Only the files of tables that are Hive's own are moved along with a name.
    entry.tableType, entry.parameters["EXTERNAL"] = "EXTERNAL_TABLE", "TRUE"
    entry.dbName, entry.tableName = to.namespace, to.table
    _alter(client, start, entry)


@contextmanager
def _locked(client: Any, table: TableName) -> Iterator[None]:
    """The lock that every writer of Iceberg takes for a commit."""
    import getpass

    from hive_metastore.ttypes import (
        CheckLockRequest,
        LockComponent,
        LockLevel,
        LockRequest,
        LockState,
        LockType,
        UnlockRequest,
    )

    part = LockComponent(
        type=LockType.EXCLUSIVE,
        level=LockLevel.TABLE,
        dbname=table.namespace,
        tablename=table.table,
        isTransactional=True,
    )
    lock = client.lock(LockRequest(component=[part], user=getpass.getuser(), hostname=socket.gethostname()))
    try:
        for _ in range(_LOCK_TRIES):
            if lock.state == LockState.ACQUIRED:
                break
            time.sleep(_LOCK_PAUSE_S)
            lock = client.check_lock(CheckLockRequest(lockid=lock.lockid))
        else:
            raise CatalogBusyError(f"Others kept {table} locked in the Hive Metastore.", "Try again.")
        yield
    finally:
        client.unlock(UnlockRequest(lockid=lock.lockid))
