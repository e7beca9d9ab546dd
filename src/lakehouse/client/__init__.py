"""A lake behind a service: `connect("http://…")` gives a `RemoteLake` with the methods of `Lake`."""

from __future__ import annotations

from lakehouse.client.lake import RemoteLake
from lakehouse.client.transport import Transport
from lakehouse.core.errors import BadSettingError

__all__ = ["RemoteLake", "connect"]


def connect(
    url: str = "", key: str = "", *, branch: str = "", timeout_s: float = 0.0, allow_http: bool = False
) -> RemoteLake:
    """Connect to a lake that `lake serve` serves. Nothing is sent before the first call.

    >>> url, key = "http://127.0.0.1:8600", "lake_…"  # doctest: +SKIP
    >>> with connect(url, key) as remote:
    ...     remote.sql("select count(*) from crm.leads").rows()
    [(3,)]

    Args:
        url: its address (default: the setting `url`, e.g. from LAKE_URL).
        key: an API key or an OIDC token (default: the setting `key`, e.g. from LAKE_KEY or LAKE_KEY_FILE).
        branch: the branch to read and write (default: main).
        timeout_s: how long the service may be silent (default: the setting `timeout_s`, 330).
        allow_http: send the key over plain http:// to another machine (default: the setting `allow_http`).
    """
    from lakehouse.config.load import load_settings

    if not url or not key or not timeout_s:
        settings = load_settings()
        timeout_s = timeout_s or settings.timeout_s
        # A key belongs to the address that it is set for: it is not sent to another one.
        key = key or (settings.key if url in ("", settings.url) or not settings.url else "")
        url, allow_http = url or settings.url, allow_http or settings.allow_http
    if not url:
        raise BadSettingError(
            "There is no address of a service.", 'Set LAKE_URL, or write connect("http://127.0.0.1:8600").'
        )
    lake = RemoteLake(Transport(url, key, timeout_s, allow_http))
    return lake.branch(branch) if branch else lake
