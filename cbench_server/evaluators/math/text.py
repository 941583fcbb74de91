"""Mathematical notation made plain: delimiters, spacing, digits and dressing removed."""

import re
import unicodedata

# Signs that are written in several ways, each as ASCII or LaTeX has it.
_SIGNS = str.maketrans(
    dict.fromkeys("−﹣－‒–", "-")
    | dict.fromkeys("\u00a0\u2009\u202f\u3000\u2007", " ")
    | {"，": ",", "．": ".", "％": "%", "：": ":", "（": "(", "）": ")", "＝": "=", "＄": "$"}
    | {"∞": "\\infty ", "π": "\\pi ", "×": "\\times ", "·": "\\cdot ", "÷": "/", "⁄": "/"}
    | {"≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ", "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in "}
    | {"²": "^2", "³": "^3", "°": "^\\circ ", "½": " 1/2", "¼": " 1/4", "¾": " 3/4"}
    | {"√": "\\sqrt ", "…": "\\ldots ", "٬": ",", "٫": "."}
    | {"。": ". ", "।": ". ", "！": "! ", "？": "? "}
)
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"), ("**", "**"), ("`", "`"))
_TEXT = re.compile(
    r"\\(?:text|mathrm|textbf|mathbf|textit|mathit|textrm|mbox|textnormal|operatorname|mathsf|texttt)"
    r"\s*\{([^{}]*)\}"
)
_SIZE = re.compile(
    r"\\(?:left|right|bigg|Bigg|big|Big)[lr]?(?![A-Za-z])\s*\.?"
    r"|\\(?:displaystyle|textstyle|limits|nolimits|rm|bf|it)(?![A-Za-z])"
)
_SPACING = re.compile(
    r"\\[,;: ]|\\q?quad(?![A-Za-z])|\\ |~|\\(?:h|v)space\{[^{}]*\}|\\phantom\{[^{}]*\}"
)
_THOUSANDS = re.compile(r"(?<=\d)(?:\{\s*,\s*\}|\\,|,\s*\\!|\\!\s*,|\\ )\s*(?=\d{3}(?!\d))")
_FRACTION = re.compile(r"\\[dtc]?frac(?![A-Za-z])")
_SHORT_FRACTION = re.compile(
    r"\\frac\s*(?:([0-9a-zA-Z])\s*([0-9a-zA-Z])|(\{[^{}]*\})\s*([0-9a-zA-Z])|([0-9a-zA-Z])\s*(\{[^{}]*\}))"
)


def western(text: str) -> str:
    """Return the text with decimal digits of any script as 0-9, and signs as ASCII or LaTeX."""
    if text.isascii():
        return text
    text = text.translate(_SIGNS)
    if text.isascii():
        return text
    return "".join(
        str(unicodedata.decimal(char)) if char > "\x7f" and char.isdecimal() else char
        for char in text
    )


def unwrapped(text: str) -> str:
    """Remove what may enclose an answer: math delimiters, emphasis, a full stop."""
    before = None
    while text != before:
        before = text
        text = text.strip().rstrip(".,;:\\").strip()
        for opening, closing in _DELIMITERS:
            inner = text[len(opening) : -len(closing)]
            if (
                len(text) > len(opening) + len(closing)
                and text.startswith(opening)
                and text.endswith(closing)
                and closing not in inner
            ):
                text = inner
                break
    return text


def plain(text: str) -> str:
    """Return an answer's notation without spacing commands, sizes and text commands.

    `\\dfrac12` becomes `\\frac{1}{2}`, `14{,}916` becomes `14,916`, and `\\text{cm}`
    becomes ` cm `.
    """
    text = _THOUSANDS.sub(",", text)
    for command, sign in (("\\!", ""), ("\\$", "$"), ("\\%", "%"), ("\\varnothing", "\\emptyset")):
        text = text.replace(command, sign)
    text = _SIZE.sub("", text)
    text = _SPACING.sub(" ", text)
    before = None
    while text != before:
        before, text = text, _TEXT.sub(r" \1 ", text)
    text = _FRACTION.sub(r"\\frac", text)
    text = _SHORT_FRACTION.sub(_spelt_fraction, text)
    return " ".join(text.split())


def _spelt_fraction(match: re.Match[str]) -> str:
    over, under = (part for part in match.groups() if part)
    return "\\frac" + _braced(over) + _braced(under)


def _braced(part: str) -> str:
    return part if part.startswith("{") else "{" + part + "}"


_FUNCTIONS = re.compile(
    r"(?<![\\A-Za-z])(pi|sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|arcsin|arccos|arctan|infinity|inf)(?![A-Za-z])"
)
_ROOT = re.compile(r"\\?sqrt\s*\(([^()]*)\)")
_ASCII_SIGNS = (
    ("**", "^"),
    ("<=", "\\le "),
    (">=", "\\ge "),
    ("!=", "\\ne "),
    ("infinity", "infty"),
)


def as_latex(text: str) -> str:
    """Return an answer in LaTeX that math-verify reads: `sqrt(2)*pi` becomes `\\sqrt(2)*\\pi`."""
    text = _THOUSANDS.sub("", text.replace("\\!", ""))
    text = re.sub(
        r"(?<![\d,.])(\d{1,3}(?:,\d{3})+)(?![\d,])", lambda found: found[1].replace(",", ""), text
    )
    for sign, command in _ASCII_SIGNS:
        text = text.replace(sign, command)
    text = _SIZE.sub("", text)
    before = None
    while text != before:
        before, text = text, _ROOT.sub(r"\\sqrt{\1}", text)
    # Next to a digit, math-verify takes i for a variable.
    text = re.sub(r"(?<=\d)i(?![A-Za-z])", " i", text)
    text = _FUNCTIONS.sub(lambda found: "\\" + found[1].replace("infinity", "infty") + " ", text)
    return " ".join(text.replace("\\inf ", "\\infty ").split())
