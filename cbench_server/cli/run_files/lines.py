"""Lines of a TOML text on which its keys stand; the text has been parsed before, so it is valid."""

import re

Path = tuple[str | int, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_END = re.compile(r"[,\]}\n#]")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}" + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'",
    re.S,
)


def lines_of(text: str) -> dict[Path, int]:
    """Return the line of each key, entry and element, by its path."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return scanner.found


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Return the line of a path, or of the nearest thing around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.found: dict[Path, int] = {}
        self._text = text
        self._place = 0
        self._entries: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip():
            if self._text.startswith("[[", self._place):
                table = self._header(2)
            elif self._text[self._place] == "[":
                table = self._header(1)
            else:
                self._pair(table)

    def _header(self, width: int) -> Path:
        line = self._line()
        self._place += width
        names = self._names()
        self._skip()
        self._place += width
        path: Path = ()
        for depth, name in enumerate(names):
            path = (*path, name)
            self.found.setdefault(path, line)
            if width == 2 and depth == len(names) - 1:
                self._entries[path] = self._entries.get(path, -1) + 1
            if path in self._entries:
                path = (*path, self._entries[path])
        self.found[path] = line
        return path

    def _pair(self, table: Path) -> None:
        line, path = self._line(), table
        for name in self._names():
            path = (*path, name)
            self.found.setdefault(path, line)
        self._skip()
        self._place += 1  # The sign between them.
        self._skip()
        self._value(path)

    def _names(self) -> list[str]:
        names = []
        while True:
            self._skip()
            if self._text[self._place] in "\"'":
                names.append(self._string())
            else:
                match = _BARE.match(self._text, self._place)
                assert match is not None
                names.append(match[0])
                self._place = match.end()
            self._skip()
            if self._place >= len(self._text) or self._text[self._place] != ".":
                return names
            self._place += 1

    def _value(self, path: Path) -> None:
        sign = self._text[self._place]
        self.found.setdefault(path, self._line())
        if sign in "\"'":
            self._string()
        elif sign == "[":
            self._inside("]", path, numbered=True)
        elif sign == "{":
            self._inside("}", path, numbered=False)
        else:
            end = _END.search(self._text, self._place)
            self._place = end.start() if end else len(self._text)

    def _inside(self, closing: str, path: Path, *, numbered: bool) -> None:
        self._place += 1
        count = 0
        while self._skip() and self._text[self._place] != closing:
            if self._text[self._place] == ",":
                self._place += 1
            elif numbered:
                self._value((*path, count))
                count += 1
            else:
                self._pair(path)
        self._place += 1

    def _string(self) -> str:
        match = _STRING.match(self._text, self._place)
        assert match is not None
        self._place = match.end()
        quoted = match[0]
        if quoted.startswith(("'", '"""')):
            return quoted.strip("'\"")
        return unescaped(quoted)

    def _skip(self) -> bool:
        """Pass over space and comments; False at the end."""
        while self._place < len(self._text):
            sign = self._text[self._place]
            if sign == "#":
                end = self._text.find("\n", self._place)
                self._place = len(self._text) if end < 0 else end
            elif sign in " \t\n\r":
                self._place += 1
            else:
                return True
        return False

    def _line(self) -> int:
        return self._text.count("\n", 0, self._place) + 1


def unescaped(quoted: str) -> str:
    """Read a basic string of TOML."""
    import tomllib

    return str(tomllib.loads(f"key = {quoted}")["key"])
