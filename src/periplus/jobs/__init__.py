"""Requests as rows: who does them, when, and how far they are.

Each job is a command of the program in a process of its own.
"""
