"""Runs other detectors, in the Python of the peers.

Input: one sample per line in base64 (--languages: a text in JSON). Output: one line of JSON for each peer.
"""

from __future__ import annotations

import base64
import importlib
import json
import sys
import time
from collections.abc import Callable


def detectors() -> dict[str, Callable[[bytes], str]]:
    """The installed detectors, with their versions."""
    found: dict[str, Callable[[bytes], str]] = {}
    for module, how in (
        ("chardet", "detect"),
        ("cchardet", "detect"),
        ("charset_normalizer", "detect"),
        ("resiliparse.parse.encoding", "detect_encoding"),
    ):
        try:
            peer = importlib.import_module(module)
        except ImportError:
            continue
        function = getattr(peer, how)
        version = f"{module} {getattr(peer, '__version__', '')}".strip()
        found[version] = lambda body, function=function: (
            function(body) if function.__name__ == "detect_encoding" else function(body)["encoding"]
        )
    return found


def languages() -> None:
    """The language of each text: a line of JSON for each installed peer."""
    texts = [json.loads(line) for line in sys.stdin]
    try:
        peer = importlib.import_module("py3langid")
    except ImportError:
        return
    peer.classify(texts[0])  # loads the model
    started = time.process_time()
    labels = [str(peer.classify(text)[0]) for text in texts]
    print(json.dumps({"peer": "py3langid", "labels": labels, "took_s": time.process_time() - started}))


def main() -> None:
    if "--languages" in sys.argv:
        languages()
        return
    bodies = [base64.b64decode(line) for line in sys.stdin]
    for name, detect in detectors().items():
        started = time.process_time()
        labels = [str(detect(body) or "") for body in bodies]
        took_s = time.process_time() - started
        print(
            json.dumps(
                {"peer": name, "labels": [label.lower().replace("_", "-") for label in labels], "took_s": took_s}
            )
        )


if __name__ == "__main__":
    main()
