"""The result of a comparison as sentences, tables, LaTeX, Markdown, JSON and a page."""
