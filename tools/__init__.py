"""Programs for those who work on Weft; nothing here is shipped."""
