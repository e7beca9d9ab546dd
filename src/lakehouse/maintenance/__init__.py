"""Keeps tables fast and the lake small: health, compaction, expiry of snapshots, removal of files that nothing needs."""
