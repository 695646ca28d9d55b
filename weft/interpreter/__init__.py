"""The interpreters: eager on local tensors, eager on global ones, lazy into a job. `stack.py` chooses."""
