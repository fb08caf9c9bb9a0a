"""Functions that commands, screens and programs call."""
