"""A Thrift client of the Hive Metastore: entries are read, changed and renamed under the lock of Iceberg's writers."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    BadSettingError,
    CatalogBusyError,
    CatalogError,
    CatalogUnreachableError,
    NotInstalledError,
    TableExistsError,
)
from lakehouse.core.names import TableName
from lakehouse.core.tables import Drop
from lakehouse.core.when import iso_time

#: The database of dropped tables.
DROPPED = "lake__dropped"
_ORIGINAL_NAME = "lake.dropped.name"
_TIMEOUT_S = 60
_LOCK_CHECKS, _LOCK_PAUSE_S = 300, 0.1


@dataclass(frozen=True)
class Metastore:
    """A metastore at an address such as `thrift://127.0.0.1:9083`."""

    uri: str

    def __post_init__(self) -> None:
        address = urlsplit(self.uri)
        if address.scheme != "thrift" or not address.hostname or not address.port:
            raise BadSettingError(
                f"catalog.uri = {self.uri!r} is not the address of a Hive Metastore.",
                "Write it as thrift://127.0.0.1:9083.",
            )

    def entries(self) -> list[tuple[TableName, Any]]:
        """Return the entries of all tables of all formats, and of all views."""
        named = []
        with self.client() as client:
            for namespace in client.get_all_databases():
                if namespace != DROPPED:
                    entries = objects(client, namespace, client.get_all_tables(namespace))
                    named += [(TableName(namespace, entry.tableName), entry) for entry in entries]
        return named

    def entry(self, table: TableName) -> Any:
        """Return one entry, or None."""
        with self.client() as client:
            return entry_of(client, table)

    def ensure_database(self, name: str, location: str) -> None:
        """Create a database unless it exists."""
        from hive_metastore.ttypes import AlreadyExistsException, Database

        with self.client() as client:
            if name not in client.get_all_databases():
                try:
                    client.create_database(Database(name=name, locationUri=location, parameters={}))
                except AlreadyExistsException:
                    return  # another client created it at the same time

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(
        self,
        table: TableName,
        table_format: str,
        warehouse: str,
        condition: Callable[[Any], bool] = lambda entry: True,
    ) -> bool:
        """Move a table's entry to another database and keep its files; False if there is none of that format.

        Args:
            condition: what the entry must fulfil, tested under the lock; False otherwise.
        """
        self.ensure_database(DROPPED, f"{warehouse.rstrip('/')}/{DROPPED}.db")
        with self.client() as client, locked(client, table):
            entry = entry_of(client, table)
            if entry is None or format_of(entry) != table_format or not condition(entry):
                return False
            entry.parameters[_ORIGINAL_NAME] = str(table)
            rename(client, entry, TableName(DROPPED, f"t{time.time_ns():020}"))
        return True

    def undrop(self, table: TableName, table_format: str, drop: str = "") -> bool:
        """Restore the table of a drop, or the one that was dropped last under a name."""
        dropped = [names for names in self.dropped_names(table_format) if names[1] == table]
        newest = max(
            (names for names in dropped if drop in ("", names[0].table[1:])),
            default=None,
            key=lambda names: names[0],
        )
        if newest is None:
            return False
        with self.client() as client, locked(client, newest[0]):
            entry = entry_of(client, newest[0])
            if entry is None:
                return False
            if entry_of(client, table) is not None:
                raise TableExistsError(
                    f"There is a table {table} again, so the dropped one cannot be restored under that name.",
                    f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
                )
            entry.parameters.pop(_ORIGINAL_NAME)
            rename(client, entry, table)
        return True

    def dropped(self, table_format: str) -> Sequence[TableName]:
        """Return the names that `undrop` can restore."""
        return sorted({original for _, original in self.dropped_names(table_format)})

    def drops(self, table_format: str) -> Sequence[Drop]:
        """Return all that `undrop` can restore."""
        ids = sorted((original, name.table[1:]) for name, original in self.dropped_names(table_format))
        return [Drop(table, id, iso_time(int(id))) for table, id in ids]

    def dropped_names(self, table_format: str) -> list[tuple[TableName, TableName]]:
        """Return the current and the original names of dropped tables."""
        names = []
        with self.client() as client:
            if DROPPED in client.get_all_databases():
                for entry in objects(client, DROPPED, client.get_all_tables(DROPPED)):
                    namespace, _, table = entry.parameters.get(_ORIGINAL_NAME, "").rpartition(".")
                    if format_of(entry) == table_format:
                        names.append((TableName(DROPPED, entry.tableName), TableName(namespace, table)))
        return names

    # ---- the connection -----------------------------------------------------------------------------------------

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Open a connection; Thrift's errors become ours."""
        try:
            from hive_metastore.ThriftHiveMetastore import Client
            from hive_metastore.ttypes import MetaException
            from thrift.protocol.TBinaryProtocol import TBinaryProtocol
            from thrift.Thrift import TException
            from thrift.transport.TSocket import TSocket
            from thrift.transport.TTransport import TBufferedTransport, TTransportException
        except ImportError as exc:
            raise NotInstalledError("the thrift client of the Hive Metastore", "iceberg") from exc
        address = urlsplit(self.uri)
        connection = TSocket(address.hostname, address.port)
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


@dataclass(frozen=True)
class MetastoreEntries:
    """Implements `FormatEntries`: the tables of one format, by their folders. The format's writers update the entries with their commits."""

    metastore: Metastore
    warehouse: str
    table_format: str

    def tables(self) -> Sequence[TableName]:
        return sorted(name for name, entry in self.metastore.entries() if format_of(entry) == self.table_format)

    def location(self, table: TableName) -> str | None:
        entry = self.metastore.entry(table)
        is_of_format = entry is not None and format_of(entry) == self.table_format
        return str(entry.sd.location).rstrip("/") if is_of_format else None

    def drop(self, table: TableName) -> bool:
        return self.metastore.drop(table, self.table_format, self.warehouse)

    def undrop(self, table: TableName, drop: str = "") -> bool:
        return self.metastore.undrop(table, self.table_format, drop)

    def dropped(self) -> Sequence[TableName]:
        return self.metastore.dropped(self.table_format)

    def drops(self) -> Sequence[Drop]:
        return self.metastore.drops(self.table_format)


def format_of(entry: Any) -> str:
    """Return the format that the creator of an entry stated, such as `iceberg` or `hudi`; empty for views."""
    parameters = entry.parameters or {}
    stated = [str(parameters.get(name, "")).lower() for name in ("spark.sql.sources.provider", "table_type")]
    return "iceberg" if "iceberg" in stated else stated[0] or stated[1]


def entry_of(client: Any, table: TableName) -> Any:
    """Return a table's entry, or None."""
    return next(iter(objects(client, table.namespace, [table.table])), None)


def objects(client: Any, namespace: str, names: Sequence[str]) -> list[Any]:
    """Return the entries of those tables of one database that exist."""
    from hive_metastore.ttypes import UnknownDBException
    from thrift.Thrift import TApplicationException

    try:
        return list(client.get_table_objects_by_name(namespace, list(names))) if names else []
    except (UnknownDBException, TApplicationException):
        if namespace in client.get_all_databases():
            raise
        return []  # the metastore answers with an internal error for a database that does not exist


def alter(client: Any, table: TableName, entry: Any) -> None:
    """Replace a table's entry."""
    from hive_metastore.ttypes import EnvironmentContext

    # Without this, the metastore would list the table's folder to count its files.
    context = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
    client.alter_table_with_environment_context(table.namespace, table.table, entry, context)


def rename(client: Any, entry: Any, to: TableName) -> None:
    """Rename a table and leave its files where they are."""
    start = TableName(entry.dbName, entry.tableName)
    if entry.tableType != "EXTERNAL_TABLE":
        # Hive moves the files of a managed table with its name, so the table becomes an external one first.
        entry.tableType, entry.parameters["EXTERNAL"] = "EXTERNAL_TABLE", "TRUE"
        alter(client, start, entry)
    entry.dbName, entry.tableName = to.namespace, to.table
    alter(client, start, entry)


@contextmanager
def locked(client: Any, table: TableName) -> Iterator[None]:
    """Take the lock that every Iceberg writer takes for a commit."""
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
        for _ in range(_LOCK_CHECKS):
            if lock.state == LockState.ACQUIRED:
                break
            time.sleep(_LOCK_PAUSE_S)
            lock = client.check_lock(CheckLockRequest(lockid=lock.lockid))
        else:
            raise CatalogBusyError(f"Another client holds the lock of {table} in the Hive Metastore.", "Try again.")
        yield
    finally:
        client.unlock(UnlockRequest(lockid=lock.lockid))
