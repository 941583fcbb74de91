"""The conformance program of the Python SDK; see cbench_server/conformance/PROGRAM.md."""

import argparse
import sys
from pathlib import Path

from evaluators import EVALUATORS
from memory import Memory
from systems import SYSTEMS

from cbench_client import ClientError, Tls, attach, serve


def main() -> int:
    """Serve or attach until told to end."""
    args = _parse()
    offered = [*SYSTEMS, Memory(), *EVALUATORS]
    try:
        if args.attach:
            tls = Tls(ca_pem=args.tls_ca.read_bytes()) if args.tls_ca else None
            attach(
                offered,
                args.attach,
                token=args.token,
                tls=tls,
                max_in_flight=args.max_in_flight,
            )
        else:
            files = tuple(each for each in (args.tls_cert, args.tls_key, args.client_ca) if each)
            serve(offered, args.address, token=args.token, tls=files or None)
    except ClientError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="127.0.0.1:0")
    parser.add_argument("--token")
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--client-ca", type=Path)
    parser.add_argument("--attach")
    parser.add_argument("--tls-ca", type=Path)
    parser.add_argument("--max-in-flight", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
