"""Agents: collections as tools of programs with a language model, over the Model Context Protocol."""
