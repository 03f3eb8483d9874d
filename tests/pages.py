"""Pages of Markdown: their code blocks and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Block:
    """A fenced block and the words after its fence."""

    info: str
    text: str

    @property
    def runs(self) -> bool:
        return self.info == "python"

    @property
    def source(self) -> str:
        """The file that the block shows some lines of, where it says so."""
        return self.info.partition(" from ")[2]

    @property
    def is_output(self) -> bool:
        """Whether this is what the block above it prints, or the message of the error it raises."""
        return self.info.endswith(" output")

    @property
    def filename(self) -> str:
        """The name in the comment that opens the block."""
        first = self.text.partition("\n")[0]
        return first.removeprefix("# ") if first.endswith(".py") else "readme.py"


def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^```(\S[^\n]*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [Block(info, text) for info, text in found]


def links(page: Path) -> list[str]:
    """Return the files a page points to."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose)
    return [target for target in targets if "://" not in target]
