"""Keyword extraction: the words and phrases that summarise a text."""
