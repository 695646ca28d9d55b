"""What a call means in the current mode: eager on local tensors, eager on global ones, or lazy, one file each. An op
and its arguments come in; an instruction for the VM or a node of a job goes out.
"""
