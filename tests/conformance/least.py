"""The least a system can be, without any SDK: Describe, Process and the handshake."""

import signal
import sys
import threading
from concurrent import futures
from typing import Any

import grpc

from cbench_client._gen.cbench.v1 import system_pb2, system_pb2_grpc


class Least(system_pb2_grpc.SystemServicer):
    """Answers `42`."""

    def Describe(self, request: Any, context: grpc.ServicerContext) -> Any:
        return system_pb2.SystemDescribeResponse(systems=[system_pb2.SystemInfo(name="least")])

    def Process(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.system not in ("", "least"):
            context.abort(grpc.StatusCode.NOT_FOUND, f'no system "{request.system}"')
        response = system_pb2.ProcessResponse()
        response.fields["response"].string_value = "42"
        return response


def main() -> None:
    """Serve until told to end."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    system_pb2_grpc.add_SystemServicer_to_server(Least(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    print(f"cbench|1|tcp|127.0.0.1:{port}", flush=True)
    ended.wait()
    server.stop(1).wait()
    sys.exit(0)


if __name__ == "__main__":
    main()
