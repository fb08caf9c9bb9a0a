"""Which page is most likely on the topic? The orders of a topical crawl."""
