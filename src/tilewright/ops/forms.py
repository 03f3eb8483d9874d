"""Forms: ops that do one of several things, as their arguments ask."""

from collections.abc import Mapping, Sequence

from tilewright.errors import AttributeValueError


def form_of(name: str, forms: Sequence[tuple[str, ...]], given: Mapping[str, object]) -> tuple[str, ...]:
    """Return the form that arguments ask for; AttributeValueError where that is none, several, or part of one."""
    asked = [form for form in forms if any(given[parameter] is not None for parameter in form)]
    help = f"pl.{name} takes " + "; or ".join(map(_listed, forms))
    if len(asked) != 1:
        found = ", ".join(parameter for form in asked for parameter in form if given[parameter] is not None)
        message = (
            f"the forms of {name} are mutually exclusive, got {found}" if asked else f"{name} needs one of its forms"
        )
        raise AttributeValueError(message, help=help)
    (form,) = asked
    if any(given[parameter] is None for parameter in form):
        found = _listed([parameter for parameter in form if given[parameter] is not None])
        both = "both " if len(form) == 2 else ""
        raise AttributeValueError(f"this form of {name} requires {both}{_listed(form)}, got {found} only", help=help)
    return form


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
