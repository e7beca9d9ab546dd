"""Catalogs that can branch, and the servers of some."""

from tests.support.catalog_bench import address, bench, nessie_server, served_beside, spark_apart

__all__ = ["address", "bench", "nessie_server", "served_beside", "spark_apart"]
