"""Periplus charts a chosen part of the web: it crawls politely, keeps what it saw, and maps each site's structure."""
