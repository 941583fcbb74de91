"""Make the *.tiktoken.xz beside this file from the wheel of llama-index-core.

The wheel carries tiktoken's vocabulary files as plain data. What is written is what tiktoken
itself would accept: files are recognised by the sha256 it expects, not by their names.
"""

import hashlib
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from cbench_server.tokens.vocabulary import VOCABULARIES

SOURCE = "llama-index-core==0.14.25"
FOLDER = "llama_index/core/_static/tiktoken_cache/"
DATA = Path(__file__).parent


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*download, "--dest", folder, SOURCE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(FOLDER)]
            contents = [archive.read(name) for name in names]
    found = {hashlib.sha256(content).hexdigest(): content for content in contents}
    DATA.mkdir(exist_ok=True)
    for vocabulary in VOCABULARIES.values():
        if vocabulary.sha256 not in found:
            sys.exit(f"{SOURCE} does not carry {vocabulary.name} ({vocabulary.sha256})")
        path = DATA / vocabulary.file_name
        path.write_bytes(lzma.compress(found[vocabulary.sha256], preset=9 | lzma.PRESET_EXTREME))
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
