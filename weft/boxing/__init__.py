"""How a global tensor changes its placement or its sbp: a planner that maps a pair of layouts to a route, a short
list of steps. Pure data: eager runs the steps at once, the compiler lowers them to tasks.
"""
