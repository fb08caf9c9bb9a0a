"""Web archives: pages read from them and written to them; copies of sites on disk."""
