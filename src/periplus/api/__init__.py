"""Periplus from Python: open a collection, crawl into it, ask it. Wires the packages below; reads like the flow."""
