"""How is a result shown: in a terminal, a file, a browser? Values in, text out."""
