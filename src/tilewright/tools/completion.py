"""Shell completion: the commands and options that a parser takes, as a script for bash, zsh or fish."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from tilewright.named_tuples import NamedTuple
from tilewright.tools.command import Command, option

ABOUT = """Print a script that completes commands, options, their values and files in a shell."""
EPILOG = """examples:
  eval "$(tilewright completion bash)"                         in ~/.bashrc
  eval "$(tilewright completion zsh)"                          in ~/.zshrc, after compinit
  tilewright completion fish > ~/.config/fish/completions/tilewright.fish
"""

BASH = """_tilewright() {{
  local words="${{COMP_WORDS[*]:1:COMP_CWORD-1}}" cur="${{COMP_WORDS[COMP_CWORD]}}" said="" files=""
  local prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  case " $words " in
{cases}
  esac
  COMPREPLY=($(compgen -W "$said" -- "$cur") ${{files:+$(compgen -f -- "$cur")}})
}}
complete -o filenames -F _tilewright tilewright
"""
_FILES = ("FILE", "PAGE", "DIR")
"""What arguments are called that are files."""


class Word(NamedTuple):
    """A command, an option, or the values of an argument, behind the commands that lead to it, and what it does."""

    path: tuple[str, ...]
    text: str
    help: str
    values: tuple[str, ...] = ()
    """What may follow an option."""
    takes_file: bool = False
    """Whether a file may follow an option."""


def _offered(action: argparse.Action) -> tuple[str, ...]:
    names: Callable[[], Iterable[str]] | None = vars(action).get("completer")
    return tuple(names()) if names is not None else tuple(map(str, action.choices or ()))


def command(whole: argparse.ArgumentParser) -> Command:
    """Return the command, for all that a parser takes."""

    def _print(options: argparse.Namespace) -> None:
        print(script(whole, str(options.shell)), end="")

    shells = option("shell", choices=("bash", "zsh", "fish"))
    return Command("completion", "complete commands in a shell", ABOUT, _print, [shells], EPILOG, json="")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return what a shell runs to complete what a parser takes."""
    words = list(_words(parser))
    with_files = {path for path, inner in commands_of(parser) if _takes_files(inner)}
    paths = sorted({word.path for word in words}, key=lambda path: (-len(path), path))
    if shell == "fish":
        without = [f"complete -c tilewright {_where(path)} -f\n" for path in paths if path not in with_files]
        return "".join([*without, *(f"complete -c tilewright {_fish(word)}\n" for word in words)])
    cases = "\n".join(_case(path, [word for word in words if word.path == path], path in with_files) for path in paths)
    return ("autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "") + BASH.format(cases=cases)


def _takes_files(parser: argparse.ArgumentParser) -> bool:
    return any(not action.option_strings and _is_file(action) for action in parser._actions)  # pyright: ignore[reportPrivateUsage]


def _is_file(action: argparse.Action) -> bool:
    return str(action.metavar).partition("[")[0] in _FILES


def commands_of(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield the commands of a parser and theirs, each with the words that lead to it."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            parsers = cast("dict[str, argparse.ArgumentParser]", action.choices)  # pyright: ignore
            for name, inner in parsers.items():
                yield (*path, name), inner
                yield from commands_of(inner, (*path, name))


def _words(parser: argparse.ArgumentParser) -> Iterator[Word]:
    for path, inner in [((), parser), *commands_of(parser)]:
        for action in inner._actions:  # pyright: ignore[reportPrivateUsage]
            choices = cast("list[argparse.Action]", getattr(action, "_choices_actions", ()))
            yield from (Word(path, choice.dest, choice.help or "") for choice in choices)
            if not choices and not action.option_strings and (values := _offered(action)):
                yield Word(path, " ".join(values), action.help or "")
            for name in action.option_strings:
                yield Word(path, name, action.help or "", _offered(action), _is_file(action))


def _case(path: tuple[str, ...], words: Sequence[Word], takes_files: bool) -> str:
    """Return the branch of a command: what it takes, and what follows an option that asks for something."""
    pattern = f'*" {" ".join(path)} "*)' if path else "*)"
    said = f'    {pattern} said="{" ".join(word.text for word in words)}" files={"1" * takes_files}'
    asking = [word for word in words if word.values or word.takes_file]
    values = [
        f'        {word.text}) said="{" ".join(word.values)}" files={"1" * word.takes_file} ;;' for word in asking
    ]
    return "\n".join([said, '      case "$prev" in', *values, "      esac ;;"]) if values else f"{said} ;;"


def _where(path: tuple[str, ...]) -> str:
    seen = " and ".join(f"__fish_seen_subcommand_from {name}" for name in path)
    return f"-n '{seen or '__fish_use_subcommand'}'"


def _fish(word: Word) -> str:
    about = f"-d '{word.help.replace(chr(39), '').replace('%', '')}'"
    if not word.text.startswith("-"):
        return f"{_where(word.path)} -f -a '{word.text}' {about}"
    option = f"-l {word.text[2:]}" if word.text.startswith("--") else f"-s {word.text[1:]}"
    values = f" -x -a '{' '.join(word.values)}'" if word.values else " -r -F" * word.takes_file
    return f"{_where(word.path)} {option}{values} {about}"
