"""Web archives: WARC 1.0 and 1.1 (ISO 28500), written and read."""
