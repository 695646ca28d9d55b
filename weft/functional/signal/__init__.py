"""`flow.fft` and `flow.signal.windows`."""
