"""How a text table is written, found from its first lines: encoding, delimiter, decimal comma, thousands, header, units.

What cannot be told is refused with what to type; what was told by the user is not guessed. Whatever differs from a plain
csv file is said in a note.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tisat.errors import ParameterError
from tisat.io.compression import Blocks, open_bytes, problem, sheet_text
from tisat.io.missing_values import is_missing, is_number, is_word
from tisat.io.text_encoding import find_encoding

DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", r"\t": "\t", "bar": "|", "pipe": "|", "point": ".", "dot": "."}
HEAD = 1 << 18  # bytes looked at, unless the header alone is longer
LONGEST_HEADER = 1 << 24  # bytes of one line: a million columns
SAMPLED = 2000  # cells of a row that are looked at to find out how a file is written
LINES = 200  # looked at
COMMENTS = ("#", "//", "%", "!")
_GROUPED = {  # thousands separator -> what a grouped number looks like, by decimal sign
    (",", "."): re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?"),
    (".", ","): re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?"),
    **{
        (space, decimal): re.compile(rf"[+-]?\d{{1,3}}({space}\d{{3}})+(\{decimal}\d+)?")
        for space in (" ", "\u00a0", "\u202f", "'")
        for decimal in ".,"
    },
}
_UNIT = re.compile(
    r"[\[(].*[\])]|.*[°%µ²³/].*|[kMmGuµ]?(m|s|A|V|W|Wh|Hz|Pa|bar|g|N|l|C|F|K|rpm|min|h|deg|deg ?[CFK]|pcs|psi|gpm)\d?|-|",
    re.I,
)
# A date or a time of day, not a number, and not a range such as 0/1 or 0-100 %.
_DATED = re.compile(r"(?!0 ?[/–-] ?\d+\D*$)([a-z]{3,9}[\s,.-]+)*\d+\D+\d+.*", re.I)
LONGEST_UNIT = 24  # letters


@dataclass(frozen=True)
class Format:
    """How a text table is written."""

    header: tuple[str, ...]
    skip: int = 1  # lines above the first row
    encoding: str = "utf-8"
    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    comment: str = ""  # what a line of comment begins with
    text: bytes | None = None  # the whole file where it had to be turned into text
    block: int = HEAD  # bytes that hold at least one line
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # words that stand for a missing value, besides the usual ones

    @property
    def plain(self) -> bool:
        """Whether arrow can read the bytes as they are."""
        return self.encoding == "utf-8" and not self.comment and self.text is None

    def is_number(self, cell: str) -> bool:
        """Whether a cell holds a number as they are written here, or says that it is missing."""
        return is_word(cell, self.missing) or is_number(
            number_text(cell, self.decimal, self.thousands), decimal=self.decimal
        )

    def said(self) -> dict[str, str]:
        """What is worth remembering for lines that come one by one."""
        usual = {"delimiter": ",", "decimal": ".", "thousands": "", "comment": ""}
        seen = {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        if self.encoding != "utf-8" and not self.encoding.lower().startswith(("utf", "u16", "u32")):
            seen["encoding"] = self.encoding  # one byte a sign: lines can be told apart before they are decoded
        return seen


def sign(text: str | None, name: str, known: Sequence[str]) -> str | None:
    r"""A delimiter or a decimal sign as typed: ``;``, ``tab``, ``comma``.

    Examples
    --------
    >>> sign("tab", "delimiter", list(DELIMITERS)), sign(",", "decimal", [".", ","])
    ('\t', ',')
    """
    if text is None:
        return None
    found = NAMED.get(text.strip().lower(), text)
    if found not in known:
        raise ParameterError(f"--{name} must be one of {' '.join(map(repr, known))}. Got {text!r} instead.")
    return found


@contextmanager
def open_text(path: Path, form: Format) -> Iterator[IO[bytes]]:
    """The file as UTF-8 bytes without comments."""
    with open_bytes(path) if form.text is None else io.BytesIO(form.text) as file:
        if form.plain:
            yield file
            return
        with io.TextIOWrapper(file, encoding=form.encoding, newline="") as lines:
            yield io.BufferedReader(Blocks(_cleaned(path, lines, form)), 1 << 18)


def _cleaned(path: Path, lines: IO[str], form: Format) -> Iterator[bytes]:
    """The lines in UTF-8, those of comment left blank: lines keep their numbers."""
    try:
        while block := lines.readlines(1 << 18):
            if form.comment:
                block = ["\n" if line.lstrip().startswith(form.comment) else line for line in block]
            yield "".join(block).encode()
    except UnicodeError as error:
        said = f"be text in {form.encoding} (--encoding says another)"
        raise problem(path, said, f"{str(error)[:60]!r}") from None


def sniff(
    path: Path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    workbook: bool = False,
    seen: dict[str, str] | None = None,
) -> Format:
    """How a text table is written.

    Parameters
    ----------
    path : Path
    delimiter, decimal, encoding, sheet : str, optional
        What the user said; not guessed then.
    workbook : bool
        It is a workbook, of which a sheet is read.
    seen : dict, optional
        How earlier files were written; decides what this one leaves open.
    """
    delimiter_line = sign(delimiter, "delimiter", list(DELIMITERS))
    point = sign(decimal, "decimal", [".", ","])
    notes: list[str] = []
    text: bytes | None = None
    if workbook:
        text, note = sheet_text(path, sheet=sheet)
        notes += [note] if note else []
        delimiter_line, point = delimiter_line or ",", point or "."
    head, block = _head(path, text)
    coding = find_encoding(path, head, encoding)
    if coding != "utf-8":
        notes.append(f"read as {coding}; --encoding says another")
    lines = head.decode(coding, errors="ignore").lstrip("\ufeff").splitlines()[: LINES + 20]
    if not any(line.strip() for line in lines):
        raise problem(path, "begin with the names of its columns", "an empty line" if lines else "an empty file")
    mark = next((mark for mark in COMMENTS if lines[0].lstrip().startswith(mark)), "")
    mark = mark or ("#" if any(line.startswith("#") for line in lines) else "")
    if mark and all(line.lstrip().startswith(mark) or not line.strip() for line in lines):
        mark = ""
    if re.fullmatch(r"sep=.", lines[0].strip()):  # what Excel writes for itself
        delimiter_line, lines[0] = delimiter_line or lines[0].strip()[-1], ""
    content = ["" if mark and line.lstrip().startswith(mark) else line for line in lines]
    between = delimiter_line or _delimiter(content)
    if between != "," and delimiter_line is None:
        notes.append(f"cells are divided by {DELIMITERS[between]}; --delimiter says another")
    table = [(number, _split(line, between)) for number, line in enumerate(content) if line.strip()][:LINES]
    at = _header(table)
    above = [number for number, _ in table[:at]]
    if above:
        notes.append(
            f"{len(above)} line{'s' * (len(above) > 1)} above the header {'were' if len(above) > 1 else 'was'} passed over"
        )
    number, header = table[at]
    body = table[at + 1 :]
    dot, thousands = _signs(path, [row[:SAMPLED] for _, row in body], between, point, seen or {})
    if dot != "." and point is None:
        notes.append("numbers have a decimal comma; --decimal says another")
    if thousands:
        notes.append(f"thousands are divided by {thousands!r}")
    units = _unit_rows([row[:SAMPLED] for _, row in body], dot, thousands)
    if units:
        number = body[units - 1][0]
        shown_units = ", ".join(cell for _, row in body[:units] for cell in row if cell)[:60]
        notes.append(f"line {body[0][0] + 1} was taken for units: {shown_units}")
    return Format(
        tuple(header), number + 1, coding, between, dot, thousands, mark, text, block, tuple(notes)
    )  # fmt: skip


def _head(path: Path, text: bytes | None) -> tuple[bytes, int]:
    """The first bytes, with at least one whole line and two where they fit, and the size of a block for arrow."""
    if text is not None:
        first = text.find(b"\n") + 1
        return text[: max(HEAD, 4 * first)], max(HEAD, 4 * first)
    with open_bytes(path) as file:
        head = file.read(HEAD)
        while len(head) % HEAD == 0 and head and b"\n" not in head[:-1] and b"\r" not in head[:-1]:
            if len(head) >= LONGEST_HEADER:
                raise problem(
                    path,
                    f"have a header of at most {LONGEST_HEADER >> 20} MB (is it a table with one row a line?)",
                    "a first line that is longer",
                    line=1,
                )
            more = file.read(HEAD)
            if not more:
                break
            head += more
        first = max(head.find(b"\n"), head.find(b"\r")) + 1
        if first > HEAD // 4:  # rows as long as the header are ahead
            head += file.read(8 * first)
    return head, max(HEAD, 8 * first)


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return [line]


def _looks_numeric(cell: str) -> bool:
    return bool(cell) and is_number(cell.replace(",", ".", 1) if cell.count(",") == 1 else cell)


def _is_whole(cell: str, delimiter: str) -> bool:
    """Whether a cell does not look like several that another delimiter divides."""
    if any(other in cell for other in ";\t|" if other != delimiter):
        return False
    return delimiter == "," or "," not in cell or _looks_numeric(cell)


def _delimiter(lines: Sequence[str]) -> str:
    """The delimiter under which most cells of the first rows are numbers and rows are as long as one another."""
    filled = [line for line in lines if line.strip()][:60]
    best, delimiter = (0.0, 0.0, 0), ","
    for candidate in DELIMITERS:
        rows = [_split(line, candidate) for line in filled]
        usual, often = Counter(len(row) for row in rows[-50:]).most_common(1)[0]
        if usual < 2:
            continue
        cells = [cell for row in rows[1:] if len(row) == usual for cell in row[1:SAMPLED] if not is_missing(cell)]
        numeric = sum(_looks_numeric(cell) for cell in cells) / max(1, len(cells))
        every = [cell for row in rows for cell in row[:SAMPLED]]
        whole = sum(_is_whole(cell, candidate) for cell in every) / len(every)
        score = (round(whole * often / len(rows[-50:]), 1), round(numeric, 1), usual)
        if score > best:
            best, delimiter = score, candidate
    return delimiter


def _header(table: Sequence[tuple[int, list[str]]]) -> int:
    """Which of the first lines names the columns: the first that is as wide as the rows and not made of numbers."""
    usual, often = Counter(len(row) for _, row in table).most_common(1)[0]
    if len(table[0][1]) == usual or usual < 2 or often < 3 or often < 0.5 * len(table):
        return 0
    for at, (_, row) in enumerate(table[:20]):
        if len(row) > usual:
            return 0
        if len(row) == usual:
            named = all(row) and not any(is_number(cell) for cell in row)
            return at if named else 0
    return 0


def _signs(
    path: Path, rows: Sequence[Sequence[str]], delimiter: str, told: str | None, seen: dict[str, str]
) -> tuple[str, str]:
    """The decimal sign and the thousands separator of the cells."""
    cells = [cell for row in rows for cell in row if any(c.isdigit() for c in cell) and not is_number(cell)]
    cells_with_both = [cell for cell in cells if "," in cell and "." in cell and re.fullmatch(r"[+-]?[\d., ']+", cell)]
    commas = [cell for cell in cells if re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", cell, re.I)]
    decimal = told
    if decimal is None and cells_with_both:
        decimal = "," if cells_with_both[0].rfind(",") > cells_with_both[0].rfind(".") else "."
    if decimal is None and commas:
        plainly = any(not re.fullmatch(r"[+-]?\d{1,3},\d{3}", cell) or re.match(r"[+-]?0\d*,", cell) for cell in commas)
        points = any("." in cell and is_number(cell) for row in rows for cell in row)
        if plainly and not points:
            decimal = ","
        elif points:
            decimal = "."
        elif "decimal" in seen:
            decimal = seen["decimal"]
        elif delimiter == ";":  # only where the comma is the decimal sign are cells divided so
            decimal = ","
        else:
            raise problem(
                path,
                "say what the comma in its numbers is: type --decimal , if it is a decimal comma, --decimal . if it divides thousands",
                f"only numbers such as {commas[0]!r}, which may be either",
            )
    decimal = decimal or "."
    for (thousands, other), pattern in _GROUPED.items():
        if other == decimal and any(pattern.fullmatch(cell) for cell in cells):
            return decimal, thousands
    return decimal, ""


def number_text(cell: str, decimal: str, thousands: str) -> str:
    """A cell with its number as Python writes it, where it is a grouped one."""
    if thousands and _GROUPED[(thousands, decimal)].fullmatch(cell.strip()):
        return cell.replace(thousands, "")
    return cell


def is_unit(cell: str) -> bool:
    """Whether a cell may be a unit such as °C or [bar], or says nothing.

    Examples
    --------
    >>> [is_unit(cell) for cell in ("m3/h", "°C", "bar", "Bad", "")]
    [True, True, True, False, True]
    """
    return _UNIT.fullmatch(cell.strip()) is not None


def are_words(cells: Sequence[str]) -> bool:
    """Whether cells are short words, none of them a number or a date.

    Examples
    --------
    >>> are_words(["", "mm_s", "Nm"]), are_words(["2026-01-01", "Bad"])
    (True, False)
    """
    return all(
        len(cell) <= LONGEST_UNIT and not _DATED.fullmatch(cell) and (is_missing(cell) or not is_number(cell))
        for cell in cells
    )


def _unit_rows(rows: Sequence[Sequence[str]], decimal: str, thousands: str) -> int:
    """How many rows below the header hold units: no numbers and no date where the rows after them have them."""
    for count in (1, 2):
        if len(rows) < count + 2:
            return 0
        after = rows[count]
        numeric = [
            c
            for c, cell in enumerate(after)
            if not is_missing(cell) and is_number(number_text(cell, decimal, thousands), decimal=decimal)
        ]
        above = rows[:count]
        if not numeric or any(len(row) != len(after) for row in above):
            continue
        cells = [row[c] for row in above for c in numeric]
        if any(cell and is_number(cell, decimal=decimal) and not is_missing(cell) for cell in cells):
            return 0
        if all(map(is_unit, cells[: len(numeric)])) and any(cells):
            return count
        dated = [c for c, cell in enumerate(after) if c not in numeric and _DATED.fullmatch(cell)]
        words = all(map(are_words, above)) and not all(map(is_missing, cells))
        if words and (
            dated or any(cell and is_unit(cell) for cell in cells[: len(numeric)])
        ):  # not a row of data: it has no time
            return count
    return 0
