"""One module per kind of document; `document.understand` has the table."""
