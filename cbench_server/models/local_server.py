"""The program that serves a local model: `python local_server.py SETTINGS`, ended by its parent.

It is started by path and imports nothing of ours. When it listens it prints where; it ends when
its standard input does, so that it outlives its parent in no case, killed or not.
"""

import json
import os
import sys


def main(settings: dict[str, object]) -> None:
    """Serve one model: one slot, repeatable answers, and nothing kept between requests."""
    import xllamacpp  # type: ignore[import-not-found] # unpacked by `cbench model fetch`

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["model"]}
    params.hostnames = ["127.0.0.1"]
    params.port = settings["port"]
    params.n_ctx = settings["context"]
    params.n_parallel = settings["slots"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.n_threads_http = 4
    params.n_gpu_layers = 0
    params.warmup = False
    params.cache_prompt = settings["prompt_cache"]
    params.cache_ram_mib = 0
    params.sampling.temp = settings["temperature"]
    params.sampling.seed = settings["seed"]
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address}), flush=True)
    while sys.stdin.buffer.read(1):
        pass
    # The native server has threads of its own, and nothing to save.
    os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
