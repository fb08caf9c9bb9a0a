"""What was written where? The full-text index, and what is asked of it: the only code that knows the engine."""
