"""The tools that language models may use, and the server that offers them (Model Context Protocol)."""
