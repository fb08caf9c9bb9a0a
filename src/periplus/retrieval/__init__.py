"""The full-text index and its queries. The only code that depends on the search engine (tantivy)."""
