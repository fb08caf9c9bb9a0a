"""Which of many sites is read next, when as many new external links as possible are to be found in a budget of pages?"""
