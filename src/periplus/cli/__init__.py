"""The command line: a front over `api`, without logic of its own. Data goes to stdout, everything else to stderr."""
