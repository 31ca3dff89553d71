"""What the readers of labels and of scores share: text, parquet, labels as stored, errors."""
