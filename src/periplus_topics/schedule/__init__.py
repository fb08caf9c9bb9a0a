"""The orders of a topical crawl: which page is most likely on the topic?"""
