"""Tests of the server, and what they share; imported before all of them.

Bytecode is kept, whatever the environment says: the programs that tests start would compile
thousands of modules again and again.
"""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
