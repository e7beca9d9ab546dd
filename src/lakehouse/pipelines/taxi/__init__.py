"""The taxi pipeline: NYC taxi months from Parquet files to trips and daily, hourly and zone statistics."""
