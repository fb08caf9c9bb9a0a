"""Parses documents: bytes in; text, links and metadata out. Pure, and total on hostile input."""
