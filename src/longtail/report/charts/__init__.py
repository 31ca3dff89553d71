"""Charts as SVG: the shapes every figure is made of, and what surrounds them."""
