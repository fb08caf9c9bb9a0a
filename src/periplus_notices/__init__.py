"""Notices: what changed in collections, by mail, webhook or feed."""
