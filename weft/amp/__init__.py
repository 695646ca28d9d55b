"""Where mixed precision belongs: casts before an op sees its operands, eagerly and as a pass. There is none yet."""
