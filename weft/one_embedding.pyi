# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.one_embedding: Ftrl"""


from weft.optim.ftrl import Ftrl as Ftrl

