"""How does an edition of a portal look, in a browser and in a feed reader?"""
