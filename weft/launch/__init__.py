"""Starting ranks, as threads of one process or as processes of one or many hosts, watching them and ending them
together.
"""
