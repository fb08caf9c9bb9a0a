"""Which blocks of a page are its content, and which help to move about its site?"""
