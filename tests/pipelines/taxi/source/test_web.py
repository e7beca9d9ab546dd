"""Addresses: the URL to request, the URL to show, and invalid ones."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import BadSettingError
from lakehouse.pipelines.taxi.source.web import address_of


@pytest.mark.parametrize(
    ("base", "url", "shown"),
    [
        ("https://a.org/trips", "https://a.org/trips/f", "https://a.org/trips/f"),
        ("https://a.org/", "https://a.org/f", "https://a.org/f"),
        ("http://ann:pw@a.org:81/t/", "http://a.org:81/t/f", "http://***@a.org:81/t/f"),
        ("https://a.org/t?sig=abc", "https://a.org/t/f?sig=abc", "https://a.org/t/f?***"),
        ("https://[::1]:81/t", "https://[::1]:81/t/f", "https://[::1]:81/t/f"),
        ("https://a.org/my trips", "https://a.org/my%20trips/f", "https://a.org/my%20trips/f"),
        ("https://ann:p@ss@a.org", "https://a.org/f", "https://***@a.org/f"),
    ],
)
def test_the_file_is_below_the_address_and_secrets_are_not_shown(base: str, url: str, shown: str) -> None:
    address = address_of(base, "f")
    assert (address.url, address.shown) == (url, shown)
    assert "pw" not in repr(address)
    assert "sig" not in repr(address)


@pytest.mark.parametrize("base", ["file:///etc", "ftp://a.org/t", "a.org/t", "https://", "https://ann:s3/cret@a.org/t"])
def test_other_urls_are_refused_without_showing_them(base: str) -> None:
    with pytest.raises(BadSettingError, match="not an http or https URL") as caught:
        address_of(base, "f")
    assert "s3" not in str(caught.value) + caught.value.hint
