"""Fixtures: a lake whose tables PyIceberg made."""

from tests.support.shop_lake import emptied, open_lake, own_lake, pyiceberg, shop, shop_home

__all__ = ["emptied", "open_lake", "own_lake", "pyiceberg", "shop", "shop_home"]
