"""Certificates for one run of the suite: an authority, a server's and a client's."""

import asyncio
from pathlib import Path

_EXTENSIONS = {
    "server": "subjectAltName=DNS:localhost,IP:127.0.0.1",
    "client": "extendedKeyUsage=clientAuth",
}
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


async def make_certificates(folder: Path) -> None:
    """Write `.pem` and `.key` of the authority `ca`, of `server` and `client`, and a `stranger`."""
    for name in ("ca", "stranger"):
        await _openssl(
            folder, "req", "-x509", *_NEW_KEY, "-subj", f"/CN={name}", "-days", "2",
            "-keyout", f"{name}.key", "-out", f"{name}.pem",
        )  # fmt: skip
    for name, extension in _EXTENSIONS.items():
        (folder / f"{name}.ext").write_text(extension)
        await _openssl(
            folder, "req", *_NEW_KEY, "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr",
        )  # fmt: skip
        await _openssl(
            folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem",
        )  # fmt: skip


async def _openssl(folder: Path, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "openssl",
        *arguments,
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    if process.returncode:
        raise OSError(f"openssl {arguments[0]} failed: {errors.decode(errors='replace')}")
