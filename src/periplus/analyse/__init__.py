"""Analyses of the known pages and links of a site. Pure functions on values."""
