"""One module per family of media types; `document.understand` has the table."""
