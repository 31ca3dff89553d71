"""What a reader of the page can move: τ, and the prior the labels follow."""
