"""Three small invented webs on this machine, for `periplus demo`, the tutorials and the tests."""
