"""Data that a daemon's configuration names, here in a real S3-compatible server."""

import gzip
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_server.datasets.named_data import named_data
from cbench_server.errors import BadDataset, InvalidInput
from tests.fixtures import preloaded
from tests.fixtures.preloaded import CBENCH

KEYS = {"AWS_ACCESS_KEY_ID": "unused", "AWS_SECRET_ACCESS_KEY": "never-shown"}

MAPPING = {"context": "passage", "question": "question", "answer": "answer"}


def lines(*numbers: int) -> bytes:
    found = [
        {"id": f"e{number}", "passage": f"It is {number}.", "question": "?", "answer": str(number)}
        for number in numbers
    ]
    return b"".join(json.dumps(each).encode() + b"\n" for each in found)


@pytest.fixture(scope="module")
def storage() -> Iterator[str]:
    """The address of a server with a bucket `lab`."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    from botocore.session import Session
    from werkzeug.serving import make_server

    application = server_module.DomainDispatcherApplication(server_module.create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    client = Session().create_client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )
    client.create_bucket(Bucket="lab")
    for key, body in {
        "traces/part-0.jsonl": lines(0, 1),
        "traces/part-1.jsonl.gz": gzip.compress(lines(2)),
        "traces/_SUCCESS": b"",
        "broken/part-0.jsonl": b"{\n",
    }.items():
        client.put_object(Bucket="lab", Key=key, Body=body)
    yield address
    server.shutdown()
    thread.join()


def table(address: str, url: str, **more: Any) -> dict[str, Any]:
    options = {"endpoint_url": address}
    env = {"key": "AWS_ACCESS_KEY_ID", "secret": "AWS_SECRET_ACCESS_KEY"}
    return {"url": url, "options": options, "env": env, "mapping": MAPPING, **more}


@pytest.mark.parametrize("url", ["s3://lab/traces", "s3://lab/traces/*.jsonl*"])
def test_a_folder_and_a_pattern_of_a_bucket_are_read(storage: str, url: str) -> None:
    (record,) = named_data({"traces": table(storage, url)}, KEYS)
    assert [(each["id"], each["context"]) for each in record.examples()] == [
        ("e0", "It is 0."),
        ("e1", "It is 1."),
        ("e2", "It is 2."),
    ]
    assert record.provenance is not None
    files = record.provenance()["files"]
    assert list(files) == ["lab/traces/part-0.jsonl", "lab/traces/part-1.jsonl.gz"]
    assert all("ETag=" in identity for identity in files.values())


def test_what_a_storage_says_is_not_repeated(storage: str) -> None:
    (record,) = named_data({"gone": table(storage, "s3://elsewhere/x-*.jsonl")}, KEYS)
    with pytest.raises(BadDataset, match='data "gone"') as caught:
        list(record.examples())
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)


def test_a_bad_line_is_named_by_its_file_and_can_be_left_out(storage: str) -> None:
    url = "s3://lab/broken/part-0.jsonl"
    (record,) = named_data({"broken": table(storage, url)}, KEYS)
    with pytest.raises(BadDataset, match=r"lab/broken/part-0\.jsonl, line 1: invalid JSON"):
        list(record.examples())
    (record,) = named_data({"broken": table(storage, url, skip_bad_lines=True)}, KEYS)
    assert list(record.examples()) == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, 'needs url = "..."'),
        ({"url": "simplecache::s3://lab/x.jsonl"}, 'chains storages by "::"'),
        ({"url": "s3://lab/x.jsonl", "key": "k"}, 'has no key "key"'),
        ({"url": "s3://lab/x.jsonl", "env": {"key": "NOT_SET"}}, "NOT_SET, which is not set"),
        ({"url": "s3://lab/x.jsonl", "mapping": {"context": "a..b"}}, "a..b"),
    ],
    ids=["no-url", "chain", "unknown-key", "unset", "mapping"],
)
def test_a_table_that_cannot_be_meant_is_refused(entry: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        named_data({"traces": entry}, {})
    assert message in str(caught.value)


def test_a_run_names_data_and_records_its_files(storage: str, tmp_path: Path) -> None:
    config = tmp_path / "cbench.toml"
    config.write_text(
        f"""
        [data.traces]
        url = "s3://lab/traces"
        options = {{ endpoint_url = "{storage}" }}
        env = {{ key = "AWS_ACCESS_KEY_ID", secret = "AWS_SECRET_ACCESS_KEY" }}
        mapping = {{ context = "passage", question = "question", answer = "answer" }}
        """
    )
    environment = {
        **os.environ,
        **KEYS,
        "CBENCH_HOME": str(tmp_path / "home"),
        "CBENCH_CONFIG": str(config),
    }

    def cbench(*arguments: str) -> Any:
        return preloaded.run(
            [str(CBENCH), *arguments], capture_output=True, text=True, env=environment
        )

    done = cbench("run", "--builtin", "identity", "--dataset", "traces", "--output", "json")
    assert done.returncode == 0, done.stderr
    (described,) = json.loads(done.stdout)["config"]["datasets"]
    assert list(described["files"]) == ["lab/traces/part-0.jsonl", "lab/traces/part-1.jsonl.gz"]
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr
    listed = cbench("datasets")
    assert "traces" in listed.stdout
