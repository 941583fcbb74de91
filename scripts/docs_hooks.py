"""What MkDocs does not know of this repository: links out of docs/, folders, llms.txt."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MAIN = "https://github.com/cbench/cbench-server/blob/main/"
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_MARKS = re.compile(r"[*`]|\[([^\]]*)\]\([^)]*\)")


def on_config(config: Any) -> Any:
    """Put the pages of a folder where the nav says `folder/*`."""
    config["nav"] = _expanded(config["nav"])
    return config


def _expanded(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_expanded(each) for each in entry]
    if isinstance(entry, dict):
        return {title: _expanded(each) for title, each in entry.items()}
    if entry.endswith("/*"):
        return sorted(
            path.relative_to(DOCS).as_posix() for path in (DOCS / entry[:-2]).glob("*.md")
        )
    return entry


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links out of docs/, and to folders, to the repository."""
    folder = (DOCS / page.file.src_uri).parent

    def led(found: re.Match[str]) -> str:
        if "://" in found[2]:
            return found[0]
        target = (folder / found[2]).resolve()
        if target.is_relative_to(DOCS) and target.is_file():
            return found[0]
        if not target.is_relative_to(ROOT):
            return found[0]
        return f"{found[1]}{MAIN}{target.relative_to(ROOT).as_posix()}{found[3]}"

    return _LINK.sub(led, markdown)


def on_post_build(config: Any) -> None:
    """Write llms.txt: every page by title, with its first sentence."""
    Path(config["site_dir"], "llms.txt").write_text(llms(config["nav"]), encoding="utf-8")


def llms(nav: list[Any]) -> str:
    """Render the list of pages for programs that read text (llmstxt.org)."""
    lines = ["# cbench-server", "", f"> {_summary(ROOT / 'README.md')}", ""]
    for section in nav:
        for title, entries in section.items():
            if isinstance(entries, str):
                continue
            lines += [f"## {title}", ""]
            lines += [_line(entry) for each in entries for entry in _pages(each)]
            lines.append("")
    return "\n".join(lines)


def _pages(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    if isinstance(entry, dict):
        return [page for each in entry.values() for page in _pages(each)]
    return [page for each in entry for page in _pages(each)]


def _line(name: str) -> str:
    path = DOCS / name
    title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    return f"- [{title}]({MAIN}docs/{name}): {_summary(path)}"


def _summary(path: Path) -> str:
    """Return the first sentence below a page's title."""
    text = path.read_text(encoding="utf-8")
    body = [
        part
        for part in text.split("\n\n")[1:]
        if part[:1].isalpha() or part[:1] == "`" != part[2:3]
    ]
    plain = _MARKS.sub(r"\1", " ".join(body[0].split())) if body else ""
    return re.split(r"(?<=[.])\s", plain)[0]
