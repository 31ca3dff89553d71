"""One file for each result of a flow: the result as text, tables and a page."""
