"""What a memory is made of and how fine a process draws, read from the words of a device's file.

Both are said in words in the files, as their makers say them: ``LPDDR5-6400, 256 bits`` or
``TSMC 4NP``. They become typed here, once, by a closed table: what it does not know is an error.
"""

import re
from enum import Enum

from mlsys.errors import ArgumentError


class Technology(Enum):
    """What a memory is made of.

    ``DRAM`` is dynamic memory whose kind is not told. ``STACKED`` is dynamic memory in stacks in the
    package that is no HBM, or whose kind is not told.
    """

    DRAM = "DRAM"
    DDR = "DDR"
    LPDDR = "LPDDR"
    GDDR = "GDDR"
    HBM = "HBM"
    STACKED = "stacked DRAM"
    SRAM = "SRAM"
    REGISTER = "registers"
    FLASH = "flash"

    @property
    def dynamic(self) -> bool:
        """Whether the memory is DRAM of any kind."""
        return self not in (Technology.SRAM, Technology.REGISTER, Technology.FLASH)


class Role(Enum):
    """What a memory on the chip is there for, where its kind says so."""

    GENERAL = "any data"
    SHARED = "tiles that the threads of one unit share"
    SUMS = "partial sums"


# The words before the first comma, whole; what follows it says how wide or how many.
_KINDS = (
    (Technology.HBM, re.compile(r"HBM(?P<generation>\d?\w?)")),
    (Technology.GDDR, re.compile(r"GDDR(?P<generation>\d\w?)?")),
    (Technology.LPDDR, re.compile(r"LPDDR(?P<generation>\d\w?)?(-\d+)?( at .*| of the .*)?")),
    (Technology.DDR, re.compile(r"DDR(?P<generation>\d\w?)(-\d+)?( weight memory)?")),
    (Technology.DDR, re.compile(r"MRDIMM-\d+")),
    (Technology.STACKED, re.compile(r"DRAM in stacks|stacked DRAM in the package")),
    (Technology.DRAM, re.compile(r"DRAM( of the .*)?")),
    (Technology.FLASH, re.compile(r"(on-chip )?flash")),
    (Technology.REGISTER, re.compile(r"(vector )?(registers|register file)( .*)?")),
    (Technology.SRAM, re.compile(r"((on-chip|general-purpose|tightly coupled|share of|AXI) )?SRAM\d?( .*)?")),
)
_KNOWN = "HBM3e, GDDR6, LPDDR5-6400, DDR4-3200, MRDIMM-8800, DRAM, DRAM in stacks, on-chip flash, register file, SRAM"


def _read(kind: str) -> tuple[Technology, str]:
    first = kind.partition(",")[0].strip()
    for technology, words in _KINDS:
        match = words.fullmatch(first)
        if match:
            return technology, match.groupdict().get("generation") or ""
    raise ArgumentError(
        f"technology_of(): `kind` must begin with a known kind of memory, such as {_KNOWN}; got {kind!r}. "
        "Say it so in the device's file, with details behind a comma, or add the kind to mlsys/hardware/technology.py"
    )


def technology_of(kind: str) -> Technology:
    """Return what a memory is made of.

    Parameters
    ----------
    kind
        As in a device's file: the kind, and details behind a comma.

    Raises
    ------
    ArgumentError
        If no known kind begins it.

    Examples
    --------
    >>> technology_of("LPDDR5-6400, 256 bits").value, technology_of("SRAM shared with shared memory").value
    ('LPDDR', 'SRAM')
    """
    return _read(kind)[0]


def generation_of(kind: str) -> str:
    """Return the generation of a memory, such as ``"5X"``; empty where none is told.

    Examples
    --------
    >>> generation_of("HBM2e"), generation_of("LPDDR5X-8533, 64 bits"), generation_of("SRAM")
    ('2e', '5X', '')
    """
    return _read(kind)[1]


_ROLES = (
    (Role.SUMS, re.compile(r"\bsums\b")),
    (Role.SHARED, re.compile(r"\bshared memory\b|\bmanaged by software\b|\bof a GPU core\b")),
)


def role_of(kind: str) -> Role:
    """Return what a memory is there for.

    Parameters
    ----------
    kind
        As in a device's file.

    Examples
    --------
    >>> role_of("SRAM shared with shared memory").name, role_of("SRAM of 32-bit sums").name, role_of("SRAM").name
    ('SHARED', 'SUMS', 'GENERAL')
    """
    return next((role for role, words in _ROLES if words.search(kind)), Role.GENERAL)


# Names of processes, in order of how they are looked for; the first process that a text names counts.
_NODES = re.compile(
    r"(?P<nm>\d+(?:\.\d+)?) ?nm\b"  # 7 nm, 5nm
    r"|\bIntel (?P<angstrom>\d+)A\b"  # Intel 18A
    r"|\bIntel (?P<intel>\d+)\b"  # Intel 7
    r"|\b(?:N|SF)(?P<after>\d+)[A-Z]*\b"  # N7, N5P, SF4
    r"|\b(?P<before>\d+)(?:N[A-Z]*|LP[A-Z]*|FF[A-Z]*)\b"  # 4N, 4NP, 8LPP, 12FFN
)


def node_of(text: str) -> float | None:
    """Return the name of a process in nm; None where the text names none.

    The name is no length: it orders generations. Of a package of several dies it is that of the
    first one named, which computes.

    Parameters
    ----------
    text
        As in a device's file.

    Examples
    --------
    >>> [node_of(text) for text in ("TSMC 7 nm N7", "TSMC 4NP", "Intel 7", "Samsung 8LPP", "Intel 18A", "")]
    [7.0, 4.0, 7.0, 8.0, 1.8, None]
    >>> node_of("TSMC 5 nm cores, 6 nm I/O")
    5.0
    """
    match = _NODES.search(text)
    if match is None:
        return None
    if match["angstrom"]:
        return float(match["angstrom"]) / 10
    return float(next(filter(None, match.groups())))
