"""`python -m periplus.cli`: the command without its script."""

from periplus.cli.main import main

main(prog_name="periplus")
