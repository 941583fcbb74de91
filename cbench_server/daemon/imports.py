"""Imports of the modules that a daemon was told to load, which register components."""

import importlib
import os
import sys
from collections.abc import Sequence

from cbench_server.errors import InvalidInput, said


def import_modules(names: Sequence[str]) -> None:
    """Import modules, also from the current folder.

    That comes last, and only where there is something to import: whoever can put a file into
    the folder where a daemon is started must not decide what `import json` means.
    """
    if names and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            why = said(error)
            if name.endswith(".py") or os.sep in name:
                module = os.path.basename(name).removesuffix(".py")
                why = f"that is a file; give the module's name, such as {module}, in its folder"
            raise InvalidInput(f'cannot import "{name}": {why}') from error
