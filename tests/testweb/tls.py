"""Where does the bad certificate come from? Signed by itself, made when asked for, by the openssl program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

AVAILABLE = shutil.which("openssl") is not None  # tests of TLS are left out without it


def self_signed(folder: Path, name: str = "a.test") -> Path:
    """A PEM file with key and certificate for `name`, valid one day, trusted by nobody."""
    pem = folder / "self-signed.pem"
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", f"/CN={name}"]
    words += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    pem.write_bytes(key.read_bytes() + certificate.read_bytes())
    return pem
