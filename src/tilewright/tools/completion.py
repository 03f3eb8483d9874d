"""Shell completion: the commands and options that a parser takes, as a script for bash, zsh or fish."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import cast

from tilewright.named_tuples import NamedTuple

ABOUT = """Print a script that completes commands, options and files in a shell."""
EPILOG = """examples:
  eval "$(tilewright completion bash)"                         in ~/.bashrc
  eval "$(tilewright completion zsh)"                          in ~/.zshrc, after compinit
  tilewright completion fish > ~/.config/fish/completions/tilewright.fish
"""

BASH = """_tilewright() {{
  local words="${{COMP_WORDS[*]:1:COMP_CWORD-1}}" cur="${{COMP_WORDS[COMP_CWORD]}}" said=""
  case " $words " in
{cases}
  esac
  COMPREPLY=($(compgen -W "$said" -- "$cur") $(compgen -f -- "$cur"))
}}
complete -o filenames -F _tilewright tilewright
"""


class Word(NamedTuple):
    """A command or an option, behind the commands that lead to it, and what it does."""

    path: tuple[str, ...]
    text: str
    help: str


def configure(parser: argparse.ArgumentParser, whole: argparse.ArgumentParser) -> None:
    """Let a parser take the command, for all that another one takes."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))

    def _print(options: argparse.Namespace) -> None:
        print(script(whole, str(options.shell)), end="")

    parser.set_defaults(command=_print)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return what a shell runs to complete what a parser takes."""
    words = list(_words(parser))
    if shell == "fish":
        return "".join(f"complete -c tilewright {_fish(word)}\n" for word in words)
    paths = sorted(dict.fromkeys(word.path for word in words), key=len, reverse=True)
    cases = "\n".join(f'    {_case(path)} said="{_listed(words, path)}" ;;' for path in paths)
    return ("autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "") + BASH.format(cases=cases)


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
            is_word = not choices and not action.option_strings
            yield from (Word(path, str(choice), action.help or "") for choice in (action.choices or ()) if is_word)
            yield from (Word(path, option, action.help or "") for option in action.option_strings)


def _listed(words: list[Word], path: tuple[str, ...]) -> str:
    return " ".join(word.text for word in words if word.path == path)


def _case(path: tuple[str, ...]) -> str:
    return f'*" {" ".join(path)} "*)' if path else "*)"


def _fish(word: Word) -> str:
    seen = " and ".join(f"__fish_seen_subcommand_from {name}" for name in word.path)
    where = f"-n '{seen or '__fish_use_subcommand'}'"
    long = word.text.startswith("--")
    what = (
        f"-l {word.text[2:]}" if long else f"-s {word.text[1:]}" if word.text.startswith("-") else f"-f -a {word.text}"
    )
    return f"{where} {what} -d '{word.help.replace(chr(39), '').replace('%', '')}'"
