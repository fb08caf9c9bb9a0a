"""Datasets, and large analyses and crawls on this machine or on a Spark cluster."""
