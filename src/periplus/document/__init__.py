"""Bytes understood: what a page says and links to. Pure, and total on hostile input."""
