"""What a tensor does that is no function of the table: operators, conversion, writing in place."""
