"""The market pipeline: stock minute bars from gzipped CSV files to bars and daily statistics."""
