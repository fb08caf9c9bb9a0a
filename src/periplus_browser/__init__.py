"""Rendering: pages as a browser shows them after their scripts ran."""
