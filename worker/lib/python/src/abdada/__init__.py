"""The table of an abdada cluster, and its workers, for Python.

`Table` is for a search of your own: its searchers, in any number of processes on any number of machines, divide the
work by what they find in the table. `Cluster` lets the workers of a cluster search: `for p in cluster.analyse(fen)`.

Threads: an object is used by one thread at a time, different ones by different threads freely; a call that waits
releases the GIL. Processes: open a Table or Cluster in the process that uses it; one that was open before a fork
raises Error in the child.
"""
from . import packed
from ._cluster import Analysis, Cluster, Progress
from ._errors import Error, InvalidArgument, NoWorkers, Refused, Unavailable
from ._handle import mix, namespace, version
from ._table import (DEPTH_MAX, SCORE_MAX, Answer, Ask, Bound, Node, Peeked, Store, Table, Verdict)

__all__ = [
    "DEPTH_MAX", "SCORE_MAX", "Analysis", "Answer", "Ask", "Bound", "Cluster", "Error", "InvalidArgument", "NoWorkers",
    "Node", "Peeked", "Progress", "Refused", "Store", "Table", "Unavailable", "Verdict", "mix", "namespace", "packed",
    "version",
]
__version__ = "0.2.0"
