"""The queue of jobs: orders, schedules, runners and progress.

Each job is a command of the program in a process of its own.
"""
