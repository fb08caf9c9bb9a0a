"""Readers of files: PDF, Word, OpenDocument, EPUB, RTF."""
