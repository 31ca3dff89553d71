"""Training by a recipe: from images to a folder with a model, its scores and their metrics."""
