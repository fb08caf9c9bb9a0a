"""The job queue: orders, schedules, runners and progress.

Each job is a Periplus command, run in a separate process.
"""
