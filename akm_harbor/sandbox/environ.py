"""Which environment variables of the host a command in the sandbox may see."""

import os
from collections.abc import Sequence
from pathlib import Path

_HARMLESS = ("LANG", "LC_ALL", "TZ")
# Where programs look for certificates; only of use, and only passed, when the sandbox shows the file.
_CERTIFICATES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO", "PIP_CERT",
)  # fmt: skip
_SHOWN = ("/etc/", "/usr/", "/opt/")


def passed_on(names: Sequence[str] = (), *, certificates: bool) -> dict[str, str]:
    """The variables of the host to pass on.

    Args:
        names: further ones that the user named.
        certificates: whether the sandbox stands on the host's system, and so shows its certificates.
    """
    found = {name: os.environ[name] for name in (*_HARMLESS, *names) if name in os.environ}
    if certificates:
        for name in _CERTIFICATES:
            path = os.environ.get(name, "")
            if path.startswith(_SHOWN) and Path(path).exists():
                found.setdefault(name, path)
    return found
