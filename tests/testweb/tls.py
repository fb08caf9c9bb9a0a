"""Valid and invalid certificates, created by the openssl program under a test authority."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

AVAILABLE = shutil.which("openssl") is not None  # tests of TLS are skipped without it
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def self_signed(folder: Path, name: str = "a.test") -> Path:
    """A PEM file with key and certificate for `name`, valid for a day, not trusted."""
    pem = folder / "self-signed.pem"
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    alternative = ("-addext", f"subjectAltName=DNS:{name}")
    _openssl(
        "req", "-x509", *_CURVE, "-days", "1", "-subj", f"/CN={name}", *alternative, "-keyout", key, "-out", certificate
    )
    pem.write_bytes(key.read_bytes() + certificate.read_bytes())
    return pem


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority. trusted: file of its own certificate."""

    folder: Path
    name: str

    @property
    def trusted(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def sign(
        self,
        label: str,
        *,
        days: int = 1,
        purpose: str = "serverAuth",
        names: str = "DNS:a.test",
        may_sign: bool = False,
    ) -> Path:
        """A PEM file with key and certificate.

        days: below 0: expired; may_sign: an intermediate authority.
        """
        place = self.folder / label
        lines = [
            f"basicConstraints=critical,CA:{'TRUE' if may_sign else 'FALSE'}",
            f"extendedKeyUsage={purpose}",
            f"subjectAltName={names}",
        ]
        (place.with_suffix(".ext")).write_text("\n".join(lines[:1] if may_sign else lines), "ascii")
        key, request, certificate = (place.with_suffix(suffix) for suffix in (".key", ".csr", ".crt"))
        _openssl("req", "-new", *_CURVE, "-subj", f"/CN={label}", "-keyout", key, "-out", request)
        by = ("-CA", self.trusted, "-CAkey", self.folder / f"{self.name}.key", "-CAcreateserial")
        _openssl(
            "x509",
            "-req",
            "-in",
            request,
            *by,
            "-days",
            str(days),
            "-extfile",
            place.with_suffix(".ext"),
            "-out",
            certificate,
        )
        place.with_suffix(".pem").write_bytes(key.read_bytes() + certificate.read_bytes())
        return place.with_suffix(".pem")


def authority(folder: Path, name: str = "authority") -> Authority:
    """A new authority, trusted only where it is configured."""
    made = Authority(folder, name)
    _openssl(
        "req",
        "-x509",
        *_CURVE,
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
        "-keyout",
        folder / f"{name}.key",
        "-out",
        made.trusted,
    )
    return made


def context(pem: Path, *, newest: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """Context of a server. newest: the newest supported TLS version, which may be obsolete."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if newest is not None:
        made.set_ciphers("ALL:@SECLEVEL=0")
        made.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        made.maximum_version = newest
    made.load_cert_chain(pem)
    return made
