"""Wrong bodies: each makes one mistake, and says the error it gets."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import errors, pto
from tilewright.pto.errors import PtoArgumentError

MISTAKES: dict[str, tuple[type[Exception], Any]] = {}
LIMIT: Any = [4, 8]


def raises(kind: type[Exception]) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        MISTAKES[function.__name__] = kind, function
        return function

    return register


def forever(n: Any) -> Any:
    return forever(n + 1)


def early(n: Any) -> Any:
    for _ in range(n):
        return n
    return 0


@pto.jit(entry=False)
def inner(tile: pto.Tile, scale: pto.f32) -> None:
    pto.tile.muls(tile, scale, tile)


@pto.jit()
def launched(p: pto.ptr(pto.f32, "gm")) -> None:
    pto.barrier("ALL")


@raises(errors.UnsupportedFeatureError)
def try_statement(n: Any) -> Any:
    try:
        pto.barrier("ALL")
    finally:
        pass


@raises(errors.UnsupportedFeatureError)
def break_out(n: Any) -> Any:
    for _ in pto.static_range(4):
        break


@raises(errors.NotStaticError)
def list_comprehension(n: Any) -> Any:
    sizes = [i + 1 for i in range(4) if i < n]
    pto.const(sizes)


@raises(errors.UnknownOpError)
def unknown_tile_op(u: Any) -> Any:
    a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    pto.tile.ad(a, a, a)


@raises(errors.UnknownOpError)
def unknown_op(u: Any) -> Any:
    pto.vload(u, 0)


@raises(errors.UndefinedNameError)
def undefined_name(n: Any) -> Any:
    pto.const(LIMITS[0])  # noqa: F821 # pyright: ignore


@raises(errors.OutOfScopeError)
def bound_on_one_side(n: Any, w: Any) -> Any:
    if n > 2:
        value = 1
    pto.store_scalar(value, w, 0)  # pyright: ignore[reportPossiblyUnboundVariable]


@raises(errors.OutOfScopeError)
def two_types_after_an_if(n: Any, x: Any, u: Any) -> Any:
    if n > 2:
        value = n
    else:
        value = x
    pto.store_scalar(value, u, 0)


@raises(errors.OutOfScopeError)
def loop_variable_after_its_loop(n: Any, w: Any) -> Any:
    for i in range(n):
        pto.store_scalar(i, w, i)
    pto.store_scalar(i, w, 0)  # pyright: ignore[reportPossiblyUnboundVariable]


@raises(errors.OutOfScopeError)
def value_out_of_a_vecscope(u: Any) -> Any:
    with pto.vecscope():
        a = pto.vlds(u, 0)
    pto.vsts(a, u, 0)


@raises(errors.ReassignmentError)
def carried_type_changes(n: Any, x: Any) -> Any:
    total = x
    for i in range(n):
        total = i + pto.cast(pto.cast(total, pto.i32), pto.index)


@raises(errors.ReassignmentError)
def carried_tuple_grows(n: Any) -> Any:
    pair = (n, n)
    for _ in range(n):
        pair = (pair[0] + pair[1], pair[1], n)


@raises(errors.DTypeMismatchError)
def two_float_widths(p: Any, x: Any) -> Any:
    half = pto.cast(x, pto.f16)
    return half + x


@raises(errors.OperandError)
def float_for_an_integer(m: Any) -> Any:
    return m + 1.5


@raises(errors.OperandError)
def number_too_large(m: Any) -> Any:
    return m + (1 << 40)


@raises(errors.UnsupportedFeatureError)
def integers_divided_as_floats(m: Any) -> Any:
    return m / 2


@raises(errors.OperandError)
def tiles_added_with_an_operator(n: Any) -> Any:
    a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    return a + a


@raises(errors.ConditionError)
def number_as_a_condition(n: Any) -> Any:
    if n:
        pto.barrier("ALL")


@raises(errors.ArgumentCountError)
def missing_destination(n: Any) -> Any:
    a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    pto.tile.add(a, a)


@raises(errors.ArgumentCountError)
def misspelt_keyword(n: Any) -> Any:
    pto.alloc_tile(shape=[8, 64], dtpe=pto.f32)


@raises(errors.ArgumentCountError)
def copy_without_bursts(p: Any, u: Any) -> Any:
    pto.mte_gm_ub(p, u, 0, 128)


@raises(errors.UnsupportedFeatureError)
def op_beside_the_sides(p: Any, n: Any) -> Any:
    with pto.if_(n > 3) as branch:
        with branch.then_:
            pto.store_scalar(1.0, p, 0)
        pto.store_scalar(2.0, p, 1)
        with branch.else_:
            pto.store_scalar(3.0, p, 0)


@raises(errors.OperandError)
def number_of_a_short_float(p: Any) -> Any:
    pto.store_scalar(pto.f8e4m3(1.0), p, 0)


@raises(errors.NotStaticError)
def tile_of_unknown_size(n: Any) -> Any:
    pto.alloc_tile(shape=[n, 64], dtype=pto.f32)


@raises(errors.AttributeValueError)
def unknown_layout(n: Any) -> Any:
    pto.alloc_tile(shape=[8, 64], dtype=pto.f32, blayout="row_mayor")


@raises(errors.AttributeValueError)
def tile_in_global_memory(n: Any) -> Any:
    pto.alloc_tile(shape=[8, 64], dtype=pto.f32, memory_space="gm")


@raises(errors.OperandError)
def too_few_strides(p: Any) -> Any:
    pto.make_tensor_view(p, shape=[4, 4], strides=[1])


@raises(errors.OperandError)
def view_of_a_number(n: Any) -> Any:
    pto.make_tensor_view(n, shape=[4], strides=[1])


@raises(errors.OperandError)
def untyped_number(u: Any) -> Any:
    pto.vbr(True)


@raises(errors.OperandError)
def result_of_a_tile_op(n: Any) -> Any:
    a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    b = pto.tile.exp(a, a)
    pto.tile.exp(b, b)


@raises(errors.RecursiveCallError)
def recursive_helper(n: Any) -> Any:
    forever(n)


@raises(errors.UnsupportedFeatureError)
def early_return_in_a_helper(n: Any) -> Any:
    early(n)


@raises(errors.OperandError)
def helper_of_the_wrong_kind(x: Any) -> Any:
    inner(x, x)


@raises(PtoArgumentError)
def kernel_called(p: Any) -> Any:
    launched(p)


@raises(errors.UncallableError)
def printing(n: Any) -> Any:
    print(n)


@raises(errors.UncallableError)
def python_on_a_scalar(n: Any) -> Any:
    int(n)


@raises(errors.StaticAssertionError)
def failed_assertion(n: Any) -> Any:
    assert LIMIT[0] > 4, "too small"


@raises(errors.NotStaticError)
def assertion_about_a_scalar(n: Any) -> Any:
    assert n > 4


@raises(errors.StaticEvaluationError)
def static_division_by_zero(n: Any) -> Any:
    return n + LIMIT[0] // 0


@raises(errors.UnsupportedFeatureError)
def loop_that_counts_down(n: Any) -> Any:
    for _ in range(8, 0, -1):
        pto.barrier("ALL")


@raises(errors.PlainRangeError)
def loop_over_a_scalar(n: Any) -> Any:
    for _ in n:
        pto.barrier("ALL")


@raises(errors.UnsupportedFeatureError)
def loop_that_never_ends(n: Any) -> Any:
    while True:
        pto.barrier("ALL")


@raises(errors.ElementWriteError)
def element_assigned(n: Any) -> Any:
    a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    a[0] = 1.0


@raises(errors.ReturnMismatchError)
def value_returned(n: Any) -> Any:
    return n


@raises(errors.UnknownAttributeError)
def unknown_attribute(n: Any) -> Any:
    a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    return a.shpe


@raises(errors.UncallableError)
def with_something_else(n: Any) -> Any:
    with pto.const(1):
        pto.barrier("ALL")


@raises(errors.AttributeValueError)
def number_for_a_pipe(n: Any) -> Any:
    pto.mem_bar(kind=3)


@raises(errors.ArgumentCountError)
def barrier_without_a_pipe(n: Any) -> Any:
    pto.barrier()


@raises(errors.OperandError)
def wrong_kind_of_operand(u: Any, x: Any) -> Any:
    pto.vadd(pto.vlds(u, 0), x, pto.pset_b32("PAT_ALL"))


@raises(errors.OperandError)
def conversion_without_a_type(u: Any) -> Any:
    pto.vcvt(pto.vlds(u, 0), pto.pset_b32("PAT_ALL"))


@raises(errors.SubscriptError)
def item_at_a_runtime_place(n: Any) -> Any:
    return LIMIT[n]


@raises(errors.OutOfScopeError)
def only_bound_in_a_loop(n: Any, w: Any) -> Any:
    for i in range(n):
        last = i
    pto.store_scalar(last, w, 0)  # pyright: ignore[reportPossiblyUnboundVariable]


@raises(errors.ArgumentCountError)
def misspelt_attribute(u: Any) -> Any:
    pto.vlds(u, 0, dits="NORM")


@raises(errors.AttributeValueError)
def attribute_of_a_value(u: Any, n: Any) -> Any:
    pto.vlds(u, 0, dist=n)


@pto.simd
def returns_a_register(p: Any) -> Any:
    return pto.vlds(p, 0)


@raises(errors.ReturnMismatchError)
def sub_kernel_returns(u: Any) -> Any:
    returns_a_register(u)


@raises(errors.ArgumentCountError)
def loop_that_forgets_a_name(n: Any, x: Any) -> Any:
    loop = pto.for_(0, n).carry(total=x, count=0)
    with loop:
        loop.update(total=loop.total + x)


@raises(errors.UnsupportedFeatureError)
def loop_without_an_update(n: Any, x: Any) -> Any:
    loop = pto.for_(0, n).carry(total=x)
    with loop:
        pto.barrier("ALL")


@raises(errors.OperandError)
def sides_that_differ(flag: Any, x: Any) -> Any:
    with pto.if_(flag) as branch:
        with branch.then_:
            branch.assign(value=x)
        with branch.else_:
            branch.assign(other=x)


@raises(errors.OperandError)
def word_that_is_no_number(n: Any) -> Any:
    return pto.f16("0x1FC00")


@raises(errors.SubscriptError)
def place_with_an_end(n: Any) -> Any:
    tile = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    return pto.vlds(tile[n, 0:64])


@raises(errors.UnsupportedFeatureError)
def attribute_assigned(n: Any) -> Any:
    tile = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    tile.shape = [n, 64]


@raises(errors.UnsupportedFeatureError)
def power(x: Any) -> Any:
    return x**2


@raises(errors.UncallableError)
def size_of_a_scalar(m: Any) -> Any:
    return abs(m)


@raises(errors.ReassignmentError)
def sum_of_what_counts(m: Any) -> Any:
    total = pto.i32(0)
    for i in range(m):
        total = total + i
    return total


@raises(errors.OperandError)
def fraction_of_an_integer() -> Any:
    return pto.i32(1.5)


@raises(errors.OperandError)
def literal_too_large() -> Any:
    return pto.i8(200)


@raises(errors.OperandError)
def sum_with_bits(m: Any) -> Any:
    return m + (1 << 31)


@raises(errors.OperandError)
def half_float_too_large() -> Any:
    return pto.f16(70000.0)


@raises(errors.UnknownOpError)
def op_by_its_name_in_text(u: Any) -> None:
    pto.tadd(u)


@raises(errors.ArgumentCountError)
def array_without_an_index() -> None:
    pto.local_array_set(pto.alloc_buffer([8], pto.f32), 2.0)


@raises(errors.ArgumentCountError)
def store_of_nothing(p: pto.ptr(pto.f32, "gm")) -> Any:
    pto.scalar.store(dist="NORM")


@raises(errors.OperandError)
def no_number_is_read(p: pto.ptr(pto.f32, "gm")) -> Any:
    pto.scalar.load(p, 0, contiguous=0)


@raises(errors.OperandError)
def larger_of_a_view(p: pto.ptr(pto.f32, "gm")) -> Any:
    view = pto.make_tensor_view(p, shape=[8], strides=[1])
    pto.fmax(view, [1, 2])


@raises(errors.OperandError)
def root_of_a_view(p: pto.ptr(pto.f32, "gm")) -> Any:
    pto.sqrt(pto.make_tensor_view(p, shape=[8], strides=[1]))


@raises(errors.OperandError)
def view_kept(p: pto.ptr(pto.f32, "gm")) -> Any:
    pto.keep(pto.make_tensor_view(p, shape=[8], strides=[1]), 0)


@raises(errors.ArgumentCountError)
def slot_of_no_type(n: pto.i32) -> Any:
    pto.talloc_to_aic(None)
