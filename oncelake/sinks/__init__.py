"""How the rows of a batch are staged, by mode."""
