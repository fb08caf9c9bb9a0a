"""Crawl policies, without I/O: the store returns the ready hosts, a policy chooses among them."""
