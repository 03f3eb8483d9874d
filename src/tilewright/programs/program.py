"""Compiled programs: what `ir.compile` and `kernel.compile` return."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from tilewright.backends.abi import Number
from tilewright.backends.host import HostProgram
from tilewright.backends.interface import Code, Entries
from tilewright.call.graph_breaks import hide
from tilewright.call.rerouting import reroute
from tilewright.core.program import Program
from tilewright.frontend.references import Uncopied
from tilewright.frontend.tracebacks import brief
from tilewright.programs import inputs, saved
from tilewright.programs.artifact import Artifact
from tilewright.programs.chip_program import DEFAULT_RUNTIME, ChipProgram
from tilewright.programs.entry import Entry
from tilewright.programs.explained import Explained
from tilewright.programs.folder import ARTIFACT, PROFILE, Folder, Located, file_of, path_of
from tilewright.programs.platforms import DEFAULT, BackendType, backend_of, checked_platform, target_of
from tilewright.programs.profile import Profile
from tilewright.programs.stages import Makers, Stages

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.programs.config import RunConfig
    from tilewright.programs.torch_op import TorchOp


class Exported:
    """What a compiled program can be written down or wrapped as."""

    declared: Program

    def as_pto(self: Any) -> str:
        """Return the program as PTO text, which `pto.jit(source=...)` reads; `pto.NoPtoError` for what that cannot say.

        Its function takes the program's parameters, tensors as pointers, and then each named extent as an `index`.
        """
        from tilewright.programs.pto_text.export import as_pto

        return as_pto(self.source)

    def as_torch_op(self: Any, name: str) -> TorchOp:
        """Return the program as an operator of torch, known there as `name`, as in `"mine::softmax"`; see `TorchOp`."""
        from tilewright.programs.torch_op import torch_op

        return torch_op(self.declared, self, name)


class CompiledProgram(ChipProgram, Exported, Explained, Located, Uncopied):
    """A program ready to run, and the folder where all of it can be read.

    Called with every parameter it writes outputs in place and returns None; called with the inputs only it returns
    new outputs. `stages` are the texts it was on the way. As a path it is its folder, written when first used as one.
    """

    def __init__(
        self,
        program: Program,
        platform: str,
        loaded: Entries,
        stages: Makers | None = None,
        *,
        output_dir: str | os.PathLike[str] | None = None,
        profile: Profile | None = None,
        specialized: Mapping[str, Number] | None = None,
        backend_type: BackendType | None = None,
        runtime: str = DEFAULT_RUNTIME,
    ) -> None:
        hide()
        super().__init__()
        self.declared = self.program = program
        self.platform = platform
        self.backend_type = backend_of(platform) if backend_type is None else backend_type
        self.runtime_name = runtime
        self.loaded = loaded
        self.profile = profile or Profile()
        self.specialized: dict[str, Number] = dict(specialized or {})
        """The numbers that the code was made for: calls with others are refused."""
        self.stages = Stages(stages or {}, self._own_stages())
        self._entries: dict[str, Entry] = {}
        self._namesakes: dict[tuple[str, str | None], CompiledProgram] = {}
        self._folder = Folder(program.name, output_dir, self._files)

    @classmethod
    def of(cls, artifact: Artifact, platform: str = "cpu", **options: Any) -> CompiledProgram:
        """Return the program of an artifact; ArtifactError where it cannot run here."""
        return cls(artifact.program, platform, artifact.load(), artifact.code.texts, **options)

    @property
    def artifact(self) -> Artifact | None:
        """The program as bytes that another process can run, its errors pointing to where its kernels stand here."""
        code = self.loaded.code
        return Artifact(self.declared, code) if code.backend.is_kept else None

    @property
    def native(self) -> HostProgram | None:
        """Its host functions, None where Python stands for them."""
        return self.loaded if isinstance(self.loaded, HostProgram) else None

    def configured(self, config: RunConfig | None) -> CompiledProgram:
        """Return this program as a configuration names it, its folder written where the configuration says so.

        Platforms that mean the same processor share code: this is the same program where only their names differ, and
        the same object for the same names.
        """
        platform = DEFAULT if config is None else config.platform
        place = None if config is None else config.save_kernels_dir
        found = self._namesake(platform, None if place is None else os.path.abspath(place))
        if config is not None and config.writes_folder:
            found._folder.written()
        return found

    def _namesake(self, platform: str, place: str | None) -> CompiledProgram:
        is_there = place is None or (self._folder.is_settled and str(self._folder.path) == place)
        if platform == self.platform and is_there:
            return self
        if (platform, place) not in self._namesakes:
            made = CompiledProgram(
                self.declared, platform, self.loaded,
                output_dir=place, profile=self.profile, specialized=self.specialized, runtime=self.runtime_name,
            )  # fmt: skip
            made.stages, made.found_by = self.stages.followed(made._own_stages()), self.found_by
            if place is not None:
                made.write()
            self._namesakes.setdefault((platform, place), made)
        return self._namesakes[platform, place]

    def _entry(self, name: str) -> Entry:
        is_only = len(self.declared.entries) == 1 and type(self).__call__ is CompiledProgram.__call__
        enter = partial(reroute, self) if is_only else None
        return Entry(self.declared, self.declared[name], self.run_bound, self.specialized, self.native, enter)

    def __repr__(self) -> str:
        if self._folder.is_settled:
            return f"CompiledProgram({self._folder.path})"
        return f"CompiledProgram({self.declared.name!r}, platform={self.platform!r})"

    def save_inputs(self, *args: Any, entry: str | None = None, **named: Any) -> Path:
        """Keep the arguments of a call in the folder, checked, for its `run.py` to run on; return their file."""
        return inputs.write(self.output_dir, self.entry if entry is None else self[entry], args, named)

    # held to what it should compute, and as others know it

    def validate_ir(
        self,
        tensors: Sequence[Any] | Mapping[str, Any],
        expected: Sequence[Any] | Mapping[str, Any] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> list[str]:
        """Return the stages that give the right answer, all of them; WrongPassError names the first that does not.

        Without tolerances results may be off by 0.05 of what is `expected`; where nothing is, they are held to each
        other as closely as their element types allow. A program of a folder has the passes that were dumped there.
        """
        from tilewright.programs.validate import LOOSE, validate_ir

        subject = self if "program" in self.stages else self.output_dir
        loose = None if expected is None else LOOSE
        tolerances = (loose if rtol is None else rtol, loose if atol is None else atol)
        return validate_ir(subject, tensors, expected, *tolerances)

    @brief
    def debug(self, *args: Any, seed: int | None = None, at: Mapping[str, int] | None = None, **named: Any) -> Any:
        """Run the program line by line on eager tiles, as `kernel.debug` does; return its results."""
        from tilewright.programs.debugging import in_steps

        return in_steps(self.source).ordered(seed, at, self.ranks).entry(*args, **named)

    # kept for later

    def __reduce__(self) -> Any:
        """Return the program as `save` keeps it; TypeError for one on the interpreter."""
        if self.artifact is None:
            raise TypeError(f"{self!r} cannot be pickled: it runs on the interpreter; pickle its kernel")
        return _loaded, (self._artifact_bytes(), self.platform, self.specialized)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write what `load` reads; ValueError for a program on the interpreter, OSError where it cannot be written."""
        if self.artifact is None:
            raise ValueError(f"{self.declared.name} runs on the interpreter: compile it for the processor to save it")
        data = self._artifact_bytes()
        saved.write(path_of(directory), self._described(data), data)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> CompiledProgram:
        """Return a program that was saved, ready to run: neither its source nor the compiler is needed.

        FileNotFoundError where none was saved; ArtifactError where it is damaged, or code for another processor.
        """
        found = saved.read(path_of(directory))
        return cls.of(found.artifact, found.platform, output_dir=directory, specialized=found.specialized)

    @classmethod
    def from_dir(
        cls, directory: str | os.PathLike[str], *, platform: str | None = None, backend_type: BackendType | None = None
    ) -> CompiledProgram:
        """Return what `load` does, under another platform's name if one is given; it must mean the same back end.

        Its `program` is None: of what was saved only the declarations are left. Its passes are those in the folder.
        """
        found = saved.read(path_of(directory))
        name = found.platform if platform is None else checked_platform(platform)
        _check_runs(name, found.artifact.code, directory)
        made = cls.of(
            found.artifact, name, output_dir=directory, specialized=found.specialized, backend_type=backend_type
        )
        made.program = cast(Program, None)  # as scripts of the PTO family ask for it
        return made

    def export_c(self, directory: str | os.PathLike[str], name: str | None = None) -> None:
        """Write a header, its source and a shared library whose functions take plain pointers, extents and numbers.

        The function is called `name`, or like the program; of several entries each has its own behind it. ExportError
        says what C cannot be told, or that there is no C compiler to link with.
        """
        from tilewright.programs.export_c import export

        if self.artifact is None:
            raise ValueError(f"{self.declared.name} runs on the interpreter: compile it for the processor to export it")
        export(self.artifact, path_of(directory), name, self.specialized)

    # files

    def _own_stages(self) -> Makers:
        return {
            "metadata": lambda: self._described(self._artifact_bytes()),
            "profile": lambda: _profiled(self.profile, self.loaded.code.texts),
        }

    def _described(self, data: bytes) -> str:
        return saved.describe(self.declared, self.platform, self.artifact, data, self.specialized)

    def _artifact_bytes(self) -> bytes:
        return b"" if self.artifact is None else self.artifact.to_bytes()

    def _files(self) -> dict[str, bytes]:
        files = {file_of(name): text.encode() for name, text in self.stages.items()}
        if self.artifact is not None:
            files[ARTIFACT] = self._artifact_bytes()
        files[PROFILE] = self.profile.to_json().encode()
        return files


def _profiled(profile: Profile, texts: Makers) -> str:
    """Return how long compiling took, and what the kernels that a program launches take."""
    return f"{profile}\n{texts['launches']()}" if "launches" in texts else str(profile)


def _loaded(data: bytes, platform: str, specialized: Mapping[str, Number]) -> CompiledProgram:
    """Return a program that was pickled; ArtifactError where it cannot run here."""
    return CompiledProgram.of(Artifact.from_bytes(data), platform, specialized=specialized)


def _check_runs(platform: str, code: Code, directory: str | os.PathLike[str]) -> None:
    """Raise ValueError where a platform is not the one whose code a folder holds."""
    own = code.backend.name
    if target_of(platform) != target_of(own):
        kind = "the processor" if own == DEFAULT else f"back end {own}"
        raise ValueError(f"{str(directory)!r} holds code for {kind}, which platform {platform!r} does not run")
