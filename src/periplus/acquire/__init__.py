"""Fetches pages from servers, politely. The only package that opens sockets."""
