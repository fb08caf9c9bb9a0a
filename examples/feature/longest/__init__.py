"""The longest pages of a collection: an example of a feature in a package of its own."""
