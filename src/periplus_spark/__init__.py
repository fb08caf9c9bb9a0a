"""Runs the stages of large analyses, and crawls, on a Spark cluster: the entry point `spark` of the group
`periplus.engines`.
"""
