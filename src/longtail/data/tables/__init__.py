"""One reader and writer for scores, labels, counts and features, a block of rows at a time.

.csv, .tsv (both also .gz) and .parquet are rows of columns, .npy, .npz and .safetensors named
arrays; what a column or array means is decided above the readers of the formats.
"""
