"""Files that are put in their place whole, whatever is killed or loses power meanwhile."""

import errno
import os
from pathlib import Path
from typing import IO, Any

from cbench_server.durable import failpoints


def put_in_place(
    kind: str, file: IO[Any], part: Path, path: Path, *, is_synced: bool = True
) -> None:
    """Put a file that was written beside its place there; it may stand in for an older one.

    It is on the disk then, and what is read meanwhile is all of it or none. Without its syncs,
    which cost milliseconds, that holds for kills; after a loss of power it may be damaged or gone.

    Args:
        kind: One of `failpoints.FILES`.
        part: Where it was written, in the folder it is to be in.
    """
    file.flush()
    if is_synced:
        os.fsync(file.fileno())
    failpoints.hit(f"{kind}.written")
    os.replace(part, path)
    failpoints.hit(f"{kind}.placed")
    if is_synced:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Have the disk know which files are in a folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        os.sync()  # One may write into it and not read it.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
        os.sync()  # A network file system may not know how.
    finally:
        os.close(descriptor)
