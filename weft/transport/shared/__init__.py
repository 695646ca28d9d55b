"""The transport over memory that processes of one host share."""
