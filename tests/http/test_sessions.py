"""Sign-in of browsers: session cookies, CSRF tokens, links that work once."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from tests.support.servers.service import Served, serving

from lakehouse.core.errors import ForbiddenError
from lakehouse.http import sessions
from lakehouse.http.keys import KeyRequest
from lakehouse.http.principal import Principal
from lakehouse.http.sessions import SignInLinks


class Browser:
    """Keeps cookies and asks for pages, as a browser does."""

    def __init__(self, served: Served) -> None:
        self.served, self.session = served, requests.Session()
        self.session.headers["Accept"] = "text/html,*/*;q=0.8"

    def sign_in(self, key: str, **options: str) -> requests.Response:
        return self.post("/ui/sign-in", data={"key": key, **options}, allow_redirects=False)

    def get(self, path: str, **options: object) -> requests.Response:
        return self.session.get(self.served.url + path, timeout=60, **options)  # type: ignore[arg-type]

    def post(self, path: str, **options: object) -> requests.Response:
        return self.session.post(self.served.url + path, timeout=60, **options)  # type: ignore[arg-type]

    def csrf(self) -> str:
        return self.get("/ui").text.partition('name="csrf" content="')[2].partition('"')[0]


@pytest.fixture
def browser(served: Served) -> Browser:
    served.admin.insert("console.t", [{"id": 1}])
    return Browser(served)


def test_a_key_is_exchanged_for_a_cookie_that_scripts_and_other_sites_cannot_use(
    served: Served, browser: Browser
) -> None:
    key = served.client("reader", name="eve").key
    answer = browser.sign_in(key, next="/ui?branch=main")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui?branch=main")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert key not in cookie
    assert "eve" in browser.get("/ui").text
    assert browser.get("/whoami").json()["name"] == "eve"


def test_a_wrong_key_opens_no_session_and_a_page_leads_to_the_sign_in(browser: Browser) -> None:
    answer = browser.sign_in("lake_0_wrong")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "The key is missing or invalid." in answer.text
    asked = browser.get("/ui?branch=main", allow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (303, "/ui/sign-in?next=%2Fui%3Fbranch%3Dmain")


def test_who_is_signed_in_is_not_asked_again(served: Served, browser: Browser) -> None:
    assert browser.get("/ui/sign-in", allow_redirects=False).status_code == 200
    browser.sign_in(served.admin.key)
    answer = browser.get("/ui/sign-in?next=/ui/sql", allow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/sql")


@pytest.mark.parametrize("address", ["https://evil.example/", "//evil.example", "/docs", "/ui\\evil", "/uinverted"])
def test_the_sign_in_leads_to_pages_of_the_console_only(served: Served, browser: Browser, address: str) -> None:
    assert browser.sign_in(served.admin.key, next=address).headers["location"] == "/ui"


def test_a_sign_in_form_of_another_site_is_refused(served: Served, browser: Browser) -> None:
    answer = browser.post(
        "/ui/sign-in", data={"key": served.admin.key}, headers={"Origin": "https://evil.example"}, allow_redirects=False
    )
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_a_change_of_a_session_needs_its_token(served: Served, browser: Browser) -> None:
    browser.sign_in(served.admin.key)
    other = Browser(served)
    other.sign_in(served.admin.key)
    for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": other.csrf()}):
        answer = browser.post("/branches", json={"name": "of_a_session"}, headers={**headers, "Accept": "*/*"})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    answer = browser.post("/branches", json={"name": "of_a_session"}, headers={"X-CSRF-Token": browser.csrf()})
    assert answer.status_code == 201
    assert served.admin.ask("DELETE", "/branches/of_a_session").status_code == 200


def test_a_session_has_the_rights_of_its_key_and_ends_with_it(served: Served, browser: Browser) -> None:
    key, text = served.service.keys.create(KeyRequest("reader", "short"))
    browser.sign_in(text)
    token = {"X-CSRF-Token": browser.csrf()}
    refused = browser.post("/branches", json={"name": "x"}, headers=token)
    assert refused.status_code == 403 and "has the scope reader" in refused.text
    served.service.keys.revoke(key.id)
    assert browser.get("/ui.json").status_code == 401


def test_signing_out_ends_the_session_also_for_a_copy_of_its_cookie(served: Served, browser: Browser) -> None:
    browser.sign_in(served.admin.key)
    copy = dict(browser.session.cookies)
    assert browser.post("/ui/sign-out").status_code == 403, "without the token"
    assert browser.post("/ui/sign-out", headers={"X-CSRF-Token": browser.csrf()}).status_code == 204
    assert not browser.session.cookies
    assert requests.get(f"{served.url}/ui.json", cookies=copy, timeout=60).status_code == 401


def test_a_changed_or_expired_cookie_is_refused(
    served: Served, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = served.service.sessions
    good = signed.of_link()
    text, _, signature = good.partition(".")
    monkeypatch.setattr(sessions, "LIFETIME_S", -1)
    expired = signed.of_link()
    for value in (f"{text}x.{signature}", f"{text}.{signature[:-1]}", "x", expired):
        answer = requests.get(f"{served.url}/whoami", cookies={signed.cookie: value}, timeout=60)
        assert answer.status_code == 401, value
    assert requests.get(f"{served.url}/whoami", cookies={signed.cookie: good}, timeout=60).status_code == 200


def test_a_session_is_not_for_the_catalog_nor_for_agents(served: Served, browser: Browser) -> None:
    browser.sign_in(served.admin.key)
    assert browser.get("/catalog/v1/config").status_code == 401
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert browser.post("/mcp", json=message, headers={"X-CSRF-Token": browser.csrf()}).status_code == 401


def test_a_link_signs_in_once(served: Served, browser: Browser) -> None:
    token = SignInLinks(served.service.lake.folder).create()
    assert browser.get(f"/ui/link?token={token}").status_code == 200
    assert browser.get("/whoami").json()["scope"] == "admin"
    again = Browser(served)
    refused = again.get(f"/ui/link?token={token}")
    assert refused.status_code == 403 and "used before" in refused.text
    assert not again.session.cookies


def test_a_link_expires_and_is_stored_as_a_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = SignInLinks(tmp_path)
    monkeypatch.setattr(sessions, "LINK_LIFETIME_S", -1.0)
    token = links.create()
    (file,) = (tmp_path / "run" / "links").iterdir()
    assert token not in file.name and token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ForbiddenError, match="expired"):
        links.use(token)
    assert not file.exists()


def test_a_session_outlives_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "lake") as served:
        cookie = {served.service.sessions.cookie: served.service.sessions.of_link()}
    with serving(tmp_path / "lake") as served:
        assert requests.get(f"{served.url}/whoami", cookies=cookie, timeout=60).status_code == 200


def test_a_session_of_a_token_has_the_rights_of_its_claims_even_if_it_is_named_as_a_key(served: Served) -> None:
    key = served.service.keys.all()[0]
    assert key.scope == "admin"
    claimed = Principal(key.id, "reader", "ann", namespaces=("own",))
    assert served.service.sessions.identify(served.service.sessions.of_token(claimed)) == claimed
