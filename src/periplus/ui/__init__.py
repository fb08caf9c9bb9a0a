"""How is Periplus used in a browser?"""
