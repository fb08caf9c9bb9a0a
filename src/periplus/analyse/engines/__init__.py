"""Analyses of webs that no memory holds, over a collection's Parquet tables: from disk, or on a cluster."""
