"""A package beside Periplus that does harm: what it adds fails when it is called, or is no such thing."""


def fail(*args):
    raise ValueError("out of salt")


text = "no command"
