"""The vocabulary: frozen values and protocols that the other packages exchange. No behaviour, no input or output."""
