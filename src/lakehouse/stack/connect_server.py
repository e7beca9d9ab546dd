"""The process of Spark Connect: the lake's Spark, served over gRPC on the configured address.

Spark 3.5 starts this server on every interface, whatever its settings say. So the same gRPC server is built here, with
an address.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from lakehouse.config.load import parse_settings
from lakehouse.config.settings import Settings
from lakehouse.lake.assemble import assemble
from lakehouse.stack.jvm import serve_until_signal
from lakehouse.stack.services.connect import JAR

_MAX_MESSAGE_BYTES = 128 << 20


def main() -> int:
    settings = parse_settings(sys.stdin.read())
    stack = settings.stack
    with assemble(as_server(settings)) as lake:
        jvm = lake.spark._jvm
        grpc, connect = jvm.org.sparkproject.connect.grpc.netty, jvm.org.apache.spark.sql.connect.service
        builder = grpc.NettyServerBuilder.forAddress(jvm.java.net.InetSocketAddress(stack.host, stack.connect_port))
        builder.maxInboundMessageSize(_MAX_MESSAGE_BYTES).addService(connect.SparkConnectService(False))
        connect.SparkConnectInterceptorRegistry.chainInterceptors(builder)
        server = builder.build().start()
        return serve_until_signal(server.awaitTermination, server.isTerminated, server.shutdownNow)


def as_server(settings: Settings) -> Settings:
    """The lake's settings for a Spark in this process, with the server's jar, heap and web UI."""
    stack = settings.stack
    own = {
        "spark.jars": str(settings.cache / "jars" / JAR.file),
        "spark.ui.enabled": "true",
        "spark.ui.port": str(stack.connect_ui_port),
        "spark.driver.bindAddress": stack.host,
        "spark.driver.host": stack.host_of(),
        "spark.port.maxRetries": "0",
    }
    conf = {**settings.spark.conf, **own}
    return replace(
        settings,
        spark=replace(settings.spark, master="local[*]", driver_memory=stack.connect_memory, conf=conf),
    )


if __name__ == "__main__":
    sys.exit(main())
