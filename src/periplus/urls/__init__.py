"""Rules on the text of URLs: what is the same URL, host, site; what lies within a crawl. Pure."""
