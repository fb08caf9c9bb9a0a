"""What do the pages and links that are known say about a site? Values in, values out."""
