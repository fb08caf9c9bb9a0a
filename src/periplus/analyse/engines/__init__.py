"""How are the same analyses computed in memory, from disk or on a cluster, over a collection's Parquet tables?"""
