"""The names of --algorithm, by how their searchers take part."""

ALONE = ("abdada", "abdada-paper", "shared-table", "lazy")  # all begin at the root and share the table
STEALING = ("ybwc", "jamboree", "pvs", "epvs", "dts")
TASKS = ("aphid", "minimal-tree", "minimal-tree-static", "uidpabs")
PARALLEL = ALONE + STEALING + TASKS
