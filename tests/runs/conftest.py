"""The pipeline of a shop, on a lake of its own."""

from tests.support.sales_pipeline import shop_of

__all__ = ["shop_of"]
