"""Studies of many sites: surveys with a budget of pages, rules of choice, and webometric results."""
