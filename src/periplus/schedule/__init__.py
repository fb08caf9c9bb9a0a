"""Who is next? Pure: the store says which hosts are ready, a policy says which of them are worth a request."""
