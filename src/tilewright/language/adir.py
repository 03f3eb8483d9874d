"""`pl.adir`: how dispatches take their arguments."""

from collections.abc import Mapping

from tilewright.core.enums import ArgDirection

input = ArgDirection.Input
output = ArgDirection.Output
output_existing = ArgDirection.OutputExisting
inout = ArgDirection.InOut
no_dep = ArgDirection.NoDep
scalar = ArgDirection.Scalar

NAME_TO_DIRECTION: Mapping[str, ArgDirection] = {direction.value: direction for direction in ArgDirection}
DIRECTION_TO_NAME: Mapping[ArgDirection, str] = {direction: direction.value for direction in ArgDirection}
