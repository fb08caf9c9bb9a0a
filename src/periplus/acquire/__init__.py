"""How does a page get from a server into our hands, politely? The only package that opens sockets."""
