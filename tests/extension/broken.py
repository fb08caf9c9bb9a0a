"""A package beside Periplus that does harm: what it adds fails when it is called, or is no such thing."""

from periplus.analyse.audit import Finding
from periplus.model.audit import Category, IssueKind, Severity


def fail(*args):
    raise ValueError("out of salt")


text = "no command"
burnt = Finding(IssueKind("burnt", Severity.ERROR, Category.TITLES, "Burnt pages", "They smell.", "Stir."), fail)
