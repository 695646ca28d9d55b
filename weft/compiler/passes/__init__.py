"""One pass per file: a job comes in and a job goes out. The order in which they run is the list in `weft.compiler`."""
