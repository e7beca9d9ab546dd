"""The Hive Metastore's process: its handler behind Thrift's own server, on one address instead of all of them.

`HiveMetaStore.main` listens on every interface and asks nobody for a password. What it puts together is put together
here the same way, with a socket that is bound where the settings say.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from lakehouse.stack.jvm import drive, serve_until_told

_METASTORE = "org.apache.hadoop.hive.metastore.HiveMetaStore"


def main() -> int:
    told = json.load(sys.stdin)
    jvm, process = drive(told["java"], told["class_path"], told["options"])
    server = _server(jvm, told["host"], told["port"])
    return serve_until_told(server.serve, lambda: process.poll() is not None, server.stop)


def _server(jvm: Any, host: str, port: int) -> Any:
    hive, thrift = jvm.org.apache.hadoop.hive.metastore, jvm.org.apache.thrift
    conf = hive.conf.MetastoreConf.newMetastoreConf()
    _say_that_it_is_remote(jvm)
    handler = hive.HiveMetaStore.HMSHandler("lakehouse", conf, False)
    retrying = hive.RetryingHMSHandler.getProxy(conf, handler, False)
    variable = hive.conf.MetastoreConf.ConfVars
    largest = hive.conf.MetastoreConf.getLongVar(conf, variable.SERVER_MAX_MESSAGE_SIZE)
    arguments = thrift.server.TThreadPoolServer.Args(
        thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress(host, port))
    )
    arguments.processor(hive.TUGIBasedProcessor(retrying))
    arguments.transportFactory(hive.security.TUGIContainingTransport.Factory())
    arguments.protocolFactory(thrift.protocol.TBinaryProtocol.Factory())
    arguments.inputProtocolFactory(thrift.protocol.TBinaryProtocol.Factory(True, True, largest, largest))
    arguments.minWorkerThreads(4).maxWorkerThreads(1000)
    server = thrift.server.TThreadPoolServer(arguments)
    server.setServerEventHandler(_clean_up_after_clients(jvm, handler))
    return server


def _say_that_it_is_remote(jvm: Any) -> None:
    """What `main` notes down: it serves others."""
    noted = jvm.java.lang.Class.forName(_METASTORE).getDeclaredField("isMetaStoreRemote")
    noted.setAccessible(True)
    noted.setBoolean(None, True)


def _clean_up_after_clients(jvm: Any, handler: Any) -> Any:
    """The end of a connection gives back its thread's connection to the database; `shutdown` does just that."""
    listener = jvm.java.lang.Class.forName("org.apache.thrift.server.TServerEventHandler")
    return jvm.java.beans.EventHandler.create(listener, handler, "shutdown", None, "deleteContext")


if __name__ == "__main__":
    sys.exit(main())
