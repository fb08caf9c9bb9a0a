"""Which words and phrases say what a text is about?"""
