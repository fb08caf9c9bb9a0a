"""Rules on the text of URLs, without I/O: canonical URLs, hosts, sites, and the scope of a crawl."""
