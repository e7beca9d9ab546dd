"""Temporary keys of an object store for a few locations: the AssumeRole request of AWS STS, which MinIO implements."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import field
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from lakehouse.core.dataclass import dataclass
from lakehouse.process.http_client import HttpRequest, NoAnswerError, send

#: The lifetime of the keys in seconds: as long as a long job, because not every engine fetches new ones.
LIFETIME_S = 12 * 3600
_TIMEOUT_S = 10
_TYPE = "application/x-www-form-urlencoded"
_SIGNED = "content-type;host;x-amz-content-sha256;x-amz-date"
_READ = ("s3:GetObject",)
_READ_AND_ADD = (*_READ, "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


@dataclass(frozen=True)
class Owner:
    """The object store, and the keys that other keys are derived from."""

    endpoint: str
    region: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)


@dataclass(frozen=True)
class TemporaryKeys:
    """Keys that expire."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)


def table_policy(locations: Sequence[str], may_add: bool = True) -> str:
    """Return the policy that allows to read, and perhaps add, objects below the locations. No client may delete objects."""
    actions = list(_READ_AND_ADD if may_add else _READ)
    paths = [location.partition("://")[2].rstrip("/") for location in locations]
    statements: list[dict[str, object]] = [
        {"Effect": "Allow", "Action": actions, "Resource": [f"arn:aws:s3:::{path}/*" for path in paths]}
    ]
    for bucket, _, key in (path.partition("/") for path in paths):
        listed = {"StringLike": {"s3:prefix": [key, f"{key}/*"]}}
        resource = [f"arn:aws:s3:::{bucket}"]
        statements.append({"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": resource, "Condition": listed})
        statements.append({"Effect": "Allow", "Action": ["s3:GetBucketLocation"], "Resource": resource})
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def assume_role(owner: Owner, policy: str) -> TemporaryKeys | None:
    """Return keys with this policy; None if the store does not issue keys. Raises NoAnswerError if it does not answer."""
    form = {"Action": "AssumeRole", "Version": "2011-06-15", "DurationSeconds": str(LIFETIME_S), "Policy": policy}
    body = urlencode(form).encode()
    response = send(
        HttpRequest(owner.endpoint.rstrip("/") + "/", "POST", body, _headers(owner, body), timeout_s=_TIMEOUT_S)
    )
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR and response.status != HTTPStatus.NOT_IMPLEMENTED:
        raise NoAnswerError(f"it answered {response.status}")
    try:
        elements = ElementTree.fromstring(response.body).iter() if response.status == HTTPStatus.OK else ()
    except ElementTree.ParseError:
        return None
    keys = {element.tag.rpartition("}")[2]: element.text or "" for element in elements}
    if not keys.get("SessionToken"):
        return None
    return TemporaryKeys(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])


def _headers(owner: Owner, body: bytes) -> dict[str, str]:
    """Sign the request with AWS Signature Version 4; botocore would be 29 MB for these lines (decision 32)."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    host, digest = urlsplit(owner.endpoint).netloc, hashlib.sha256(body).hexdigest()
    headers = f"content-type:{_TYPE}\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n"
    canonical = f"POST\n/\n\n{headers}\n{_SIGNED}\n{digest}"
    scope = f"{now[:8]}/{owner.region}/sts/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{owner.secret_key}".encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={owner.access_key}/{scope}"
    return {
        "Content-Type": _TYPE,
        "X-Amz-Date": now,
        "X-Amz-Content-Sha256": digest,
        "Authorization": f"{credential}, SignedHeaders={_SIGNED}, Signature={signature}",
    }
