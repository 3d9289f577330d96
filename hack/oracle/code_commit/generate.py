"""Prints passwords of AWS CodeCommit, signed by AWS's Python library (botocore), as JSON."""

import json
import sys

import botocore
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

CASES = [
    ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", host, path, time)
    for host in (
        "git-codecommit.us-east-1.amazonaws.com",
        "git-codecommit-fips.us-gov-west-1.amazonaws.com",
        "git-codecommit.cn-north-1.amazonaws.com.cn",
    )
    for path in ("/v1/repos/fleet", "/v1/repos/Fleet_2.x-y")
    for time in ("2026-01-02T03:04:05Z", "2030-12-31T23:59:59Z")
]


def password(key, secret, host, path, time):
    """Signs like AWS's own credential helper: without a payload hash, and with a time without its Z."""
    region = host.split(".")[1]
    timestamp = time.replace("-", "").replace(":", "").rstrip("Z")
    request = AWSRequest(method="GIT", url=f"https://{host}{path}")
    request.context["timestamp"] = timestamp
    signer = SigV4Auth(Credentials(key, secret), "codecommit", region)
    canonical = f"GIT\n{path}\n\nhost:{host}\n\nhost\n"
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    return f"{timestamp}Z{signature}"


rows = [
    {"id": key, "secret": secret, "url": f"https://{host}{path}", "time": time,
     "password": password(key, secret, host, path, time)}
    for key, secret, host, path, time in CASES
]
print(f"botocore {botocore.__version__}", file=sys.stderr)
print(json.dumps(rows, indent=2))
