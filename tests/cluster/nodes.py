"""A Ray cluster of several nodes on this machine, told by lines of JSON what to do.

Run by the tests with the Python of .venv-ray: {"add": CPUs, "sandboxes": n} starts a node and
answers with its number, {"kill": number} kills its agent as a machine that burns would.
"""

import json
import os
import signal
import sys

from ray.cluster_utils import Cluster

port = {"gcs_server_port": int(sys.argv[1])} if sys.argv[1] != "0" else {}
head = {"num_cpus": 0, "include_dashboard": False, **port}
cluster = Cluster(initialize_head=True, head_node_args=head)
nodes = []


def add(cpus: int, sandboxes: int) -> int:
    """Start a node."""
    resources = {"cbench_sandbox": sandboxes} if sandboxes else {}
    nodes.append(cluster.add_node(num_cpus=cpus, resources=resources, wait=True))
    return len(nodes) - 1


def kill(number: int) -> int:
    """Kill a node's agent, and nothing that could say farewell for it."""
    [agent] = nodes[number].all_processes["raylet"]
    os.kill(agent.process.pid, signal.SIGKILL)
    return number


print(json.dumps(cluster.address), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    said = kill(order["kill"]) if "kill" in order else add(order["add"], order["sandboxes"])
    print(json.dumps(said), flush=True)
cluster.shutdown()
