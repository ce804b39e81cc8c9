"""Memory technologies and process nodes, parsed from the descriptions in device files.

Device files describe both in the vendor's words, such as ``LPDDR5-6400, 256 bits`` or ``TSMC 4NP``.
They are converted to types here, once; an unknown description is an error.
"""

import re
from enum import Enum

from mlsys.errors import ArgumentError


class Technology(Enum):
    """Technology of a memory.

    ``DRAM`` is dynamic memory of unspecified type. ``STACKED`` is dynamic memory stacked in the package
    that is not HBM, or of unspecified type.
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
    """Purpose of an on-chip memory, where its description gives one."""

    GENERAL = "any data"
    SHARED = "tiles that the threads of one unit share"
    SUMS = "partial sums"


# Patterns of the text before the first comma; the rest gives the width or the number.
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
    for technology, pattern in _KINDS:
        match = pattern.fullmatch(first)
        if match:
            return technology, match.groupdict().get("generation") or ""
    raise ArgumentError(
        f"technology_of(): `kind` must begin with a known kind of memory, such as {_KNOWN}; got {kind!r}. "
        "Use one in the device file, with details after a comma, or add the kind to mlsys/hardware/technology.py"
    )


def technology_of(kind: str) -> Technology:
    """Return the technology of a memory.

    Parameters
    ----------
    kind
        Description in the device file: the kind, and details after a comma.

    Raises
    ------
    ArgumentError
        If it does not begin with a known kind.

    Examples
    --------
    >>> technology_of("LPDDR5-6400, 256 bits").value, technology_of("SRAM shared with shared memory").value
    ('LPDDR', 'SRAM')
    """
    return _read(kind)[0]


def generation_of(kind: str) -> str:
    """Return the generation of a memory, such as ``"5X"``; empty if none is given.

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
    """Return the purpose of a memory.

    Parameters
    ----------
    kind
        Description in the device file.

    Examples
    --------
    >>> role_of("SRAM shared with shared memory").name, role_of("SRAM of 32-bit sums").name, role_of("SRAM").name
    ('SHARED', 'SUMS', 'GENERAL')
    """
    return next((role for role, pattern in _ROLES if pattern.search(kind)), Role.GENERAL)


# Names of process nodes; the first match in the text counts.
_NODES = re.compile(
    r"(?P<nm>\d+(?:\.\d+)?) ?nm\b"  # 7 nm, 5nm
    r"|\bIntel (?P<angstrom>\d+)A\b"  # Intel 18A
    r"|\bIntel (?P<intel>\d+)\b"  # Intel 7
    r"|\b(?:N|SF)(?P<after>\d+)[A-Z]*\b"  # N7, N5P, SF4
    r"|\b(?P<before>\d+)(?:N[A-Z]*|LP[A-Z]*|FF[A-Z]*)\b"  # 4N, 4NP, 8LPP, 12FFN
)


def node_of(text: str) -> float | None:
    """Return the process node in nm; None if the text names none.

    The node is a name that orders generations, not a physical length. For a package of several dies it
    is that of the first one named, the compute die.

    Parameters
    ----------
    text
        Description in the device file.

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
