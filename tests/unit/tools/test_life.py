"""The life of a kernel."""

from __future__ import annotations

import re
from itertools import groupby

import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.passes.pipeline import DEFAULT, Pass
from tilewright.passes.stages import Stage, stages, summary
from tilewright.tools.life import argument, kernel, life_page

STAGES = stages(kernel().specialize(argument()).program)


def test_there_is_a_stage_for_every_pass() -> None:
    assert [stage.each for stage in STAGES] == list(DEFAULT)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.each.name)
def test_every_stage_reads_back(stage: Stage) -> None:
    assert ir.structural_equal(pl.parse(str(stage.after)), stage.after)


@pytest.mark.parametrize("each", DEFAULT, ids=lambda each: each.name)
def test_every_pass_says_in_a_sentence_what_it_does(each: Pass) -> None:
    assert summary(each).endswith(".") and "\n" not in summary(each)


def test_the_page_has_every_pass() -> None:
    page = life_page()
    assert not [each.name for each in DEFAULT if each.name not in page]


def test_the_way_leads_down_the_folders_and_never_back_up() -> None:
    folders = [path.partition("/")[0] for path in re.findall(r"`([a-z_/]+\.py)`", life_page())]
    visited = [folder for folder, _ in groupby(folders)]
    assert len(visited) == len(set(visited)) and {"frontend", "backends", "jit"} <= set(visited)
