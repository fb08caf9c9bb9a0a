"""Topics, stories, keywords, influence and portals: what the pages of many sites are about."""
