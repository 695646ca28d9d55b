"""What ran where, when, and what it waited for: records of the VM and the actors, merged over ranks on one clock."""
