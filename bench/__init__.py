"""What Weft costs beside what people use today: `python -m bench` measures each pair in turn, in one run."""
