"""`pl.parser`: the classes of mistakes that reading a kernel raises."""

from tilewright.language.parser import diagnostics as diagnostics
from tilewright.language.parser.diagnostics.exceptions import *
