"""Does a page belong to a topic that was shown by examples?"""
