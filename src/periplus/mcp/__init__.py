"""Tools for language models, and a server for them (Model Context Protocol)."""
