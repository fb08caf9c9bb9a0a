"""Analyses of texts, stories and topics. Pure functions on values."""
