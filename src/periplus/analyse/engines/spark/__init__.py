"""How are the same stages computed on a Spark cluster?"""
