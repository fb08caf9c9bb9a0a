"""How is a collection kept in PostgreSQL, for crawls by many machines?"""
