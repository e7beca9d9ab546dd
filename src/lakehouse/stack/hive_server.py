"""The process of the Hive Metastore: its handler behind Thrift's server, on the configured address.

`HiveMetaStore.main` listens on every interface, without a password. So the same server is built here, with a socket
that is bound to an address.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from lakehouse.stack.jvm import launch_jvm, serve_until_signal

_METASTORE = "org.apache.hadoop.hive.metastore.HiveMetaStore"


def main() -> int:
    options = json.load(sys.stdin)
    jvm, process = launch_jvm(options["java"], options["class_path"], options["options"])
    server = _server(jvm, options["host"], options["port"])
    return serve_until_signal(server.serve, lambda: process.poll() is not None, server.stop)


def _server(jvm: Any, host: str, port: int) -> Any:
    hive, thrift = jvm.org.apache.hadoop.hive.metastore, jvm.org.apache.thrift
    conf = hive.conf.MetastoreConf.newMetastoreConf()
    _mark_as_remote(jvm)
    handler = hive.HiveMetaStore.HMSHandler("lakehouse", conf, False)
    retrying = hive.RetryingHMSHandler.getProxy(conf, handler, False)
    variable = hive.conf.MetastoreConf.ConfVars
    max_bytes = hive.conf.MetastoreConf.getLongVar(conf, variable.SERVER_MAX_MESSAGE_SIZE)
    arguments = thrift.server.TThreadPoolServer.Args(
        thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress(host, port))
    )
    arguments.processor(hive.TUGIBasedProcessor(retrying))
    arguments.transportFactory(hive.security.TUGIContainingTransport.Factory())
    arguments.protocolFactory(thrift.protocol.TBinaryProtocol.Factory())
    arguments.inputProtocolFactory(thrift.protocol.TBinaryProtocol.Factory(True, True, max_bytes, max_bytes))
    arguments.minWorkerThreads(4).maxWorkerThreads(1000)
    server = thrift.server.TThreadPoolServer(arguments)
    server.setServerEventHandler(_release_connections(jvm, handler))
    return server


def _mark_as_remote(jvm: Any) -> None:
    """Set the flag that `main` sets: this metastore serves other processes."""
    flag = jvm.java.lang.Class.forName(_METASTORE).getDeclaredField("isMetaStoreRemote")
    flag.setAccessible(True)
    flag.setBoolean(None, True)


def _release_connections(jvm: Any, handler: Any) -> Any:
    """When a client disconnects, return its thread's database connection; `shutdown` does that."""
    listener = jvm.java.lang.Class.forName("org.apache.thrift.server.TServerEventHandler")
    return jvm.java.beans.EventHandler.create(listener, handler, "shutdown", None, "deleteContext")


if __name__ == "__main__":
    sys.exit(main())
