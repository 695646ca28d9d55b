"""The actors of a plan driven by a virtual clock: timelines, throughput and every order of messages, without
threads.
"""
