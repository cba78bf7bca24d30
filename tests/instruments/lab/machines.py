"""The machines that the virtual cluster plays."""

# Weill's T3D: 7,000-9,000 positions a second a processor is 125 us a node; a remote read of the
# T3D takes microseconds: 10 us there and back, 2 us of work to send, 1 us to serve. Every node is
# shared, and an answer waited for: it is there before a node is done. The paper gives the node
# time only.
T3D = {"node-us": 125, "rtt-us": 10, "message-us": 2, "service-us": 1, "remote_depth": 1, "wait": True}
# Hyatt's Sequent: one memory, so a table access costs nothing beside a node, and who has work is seen at once.
SEQUENT = {"node-us": 1, "rtt-us": 0, "message-us": 0, "service-us": 0, "poll-us": 0, "remote_depth": 1, "wait": True}
# Ura's cluster: the time of a leaf is published; the network is ours: 20 us, 1 us, 0.5 us.
CLUSTER = {"rtt-us": 20, "message-us": 1, "service-us": 0.5}
# The costs of today's hosts and a switch between them: `make lab-calibrate` measures those of this machine.
LAN = {"node-us": 0.2, "rtt-us": 100, "message-us": 10, "operation-us": 0.05, "service-us": 2,
       "service-operation-us": 0.1, "share": 2}
# A node of an ending that Othello's solver searches: FFO #40 by `abdada solve`, one thread (docs/research/measurements.md).
ENDING_NODE_US = 0.04
# A node of chess at selection full.
FULL_NODE_US = 1
PERFECT = {"node-us": 1, "rtt-us": 0, "message-us": 0, "service-us": 0, "wait": True}


def counts(*numbers):
    return ",".join(str(n) for n in numbers)
