"""A person's verbs: what one does to a pipeline besides running it."""
