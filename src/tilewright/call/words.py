"""Dispatch words: what stands where in the tables that the dispatcher reads and Python fills.

A state per kernel, entries, groups of entries that leave the same axes out of their keys, and watches.
"""

from __future__ import annotations

from enum import IntEnum

from tilewright.native.llvm import I64, PTR

MAX_PARAMS, MAX_RANK = 24, 8
MAX_OPTIONS = 16
KEY_WORDS = 1 + MAX_PARAMS * (1 + MAX_RANK) + MAX_OPTIONS
LAUNCH_WORDS = MAX_PARAMS * (1 + 2 * MAX_RANK)
RESULT_WORDS = 64
RELEASE_BYTES = 1 << 16
"""Bytes of tensors from which on other Python threads may run meanwhile: below, letting them costs more."""

TENSOR, INTEGER, FLOAT, BOOL, NONE, ITSELF = (kind << 48 for kind in range(1, 7))
"""The kinds of arguments, in the upper bits of the first word that each adds to the key."""


DEVICE_KIND, DEVICE_NUMBER = 36, 40
"""Where in that word stands the kind of a tensor's device, and one more than its number; of the host's, nothing."""

LIES = 52
"""Where in it stands how the tensor lies: 0 in rows of neighbours, 1 with its last two axes in the other order, and any
other number is how many elements apart neighbours along its last axis lie."""

IN_PLACE, RETURNING = 0, 1
OF_NUMPY, OF_TORCH = 2, 4
"""The styles of calls, the first word of a key: with every argument, and with the inputs alone, arrays or tensors."""

CONFIGURED = 8
"""Added to the style of a call with a configuration, whose options are the last words of its key."""


class State(IntEnum):
    """The words of a kernel's state."""

    PARAMS = 0
    GROUPS = 1
    GROUP_TABLE = 2
    FALLBACK = 3
    TORCH_TENSOR = 4
    TORCH_PARAMETER = 5
    TORCH_DTYPES = 6
    """The DLPack word of each of torch's element types, by its number."""
    TORCH_IMPL = 7
    """Where in a tensor object the pointer to its implementation lies."""
    TORCH_KEYS = 8
    """Where in the implementation its dispatch keys lie; those of a plain tensor, and of one made in inference mode."""
    TORCH_PLAIN = 9
    TORCH_INFERENCE = 10
    TORCH_GRAD = 11
    """Where in the implementation what autograd knows lies; nothing for most tensors."""
    TORCH_REQUIRES = 12
    """The function of torch that tells whether an implementation requires grad; nothing where it was not found."""
    NDARRAY = 13
    NUMPY_DTYPES = 14
    FLOAT = 15
    INT = 16
    BOOL = 17
    NONE = 18
    TRUE = 19
    WRITTEN = 20
    """One bit for each parameter that the program writes."""
    PARALLEL = 21
    THREADS = 22
    """How many threads OpenMP had when PARALLEL was found, and the function that tells."""
    GET_THREADS = 23
    WATCHES = 24
    WATCH_TABLE = 25
    FAILED = 26
    """Called with the number of an error, the buffers to free and the entry's number."""
    HITS = 27
    ACTIVE = 28
    """How many calls are between their start and their end: tables that were replaced stay until there are none."""
    TORCH_STORAGE = 29
    """Where in the implementation its storage lies; where in that its memory and how many bytes of it there are."""
    STORAGE_DATA = 30
    STORAGE_BYTES = 31
    STORAGE_LAZY = 32
    """What frees memory that torch copies only once it is written, by torch: not ours to touch."""
    TORCH_RANK = 33
    """Where in the implementation these lie."""
    TORCH_SIZES = 34
    TORCH_STRIDES = 35
    TORCH_OFFSET = 36
    TORCH_DTYPE = 37
    NAMES = 38
    """The name of each parameter, as the one object that Python has for it; nothing for one that is not to be named."""
    DEFAULTS = 39
    """Where the kernel's function refers to its defaults."""
    TORCH_RECORDS = 40
    """The function of torch that tells whether this thread records gradients."""
    GET_THREAD_LOCAL = 41
    """The function that finds a thread's own copy of a variable; nothing where torch is not imported."""
    TORCH_THREAD = 42
    """Which variable holds the dispatch keys that a thread adds to those of its tensors, as that function wants it."""
    THREAD_PLAIN = 43
    """What it holds where nobody looks on, and in inference mode: not while torch traces or transforms."""
    THREAD_INFERENCE = 44
    STR = 45
    LOOK = 46
    """What looks for signals while a program runs."""
    OUTPUTS = 47
    """One bit for each parameter that a return-style call leaves out."""
    POINTERS = 48
    """One bit for each parameter that takes a tensor's elements in one line."""
    INPUTS = 49
    INPUT_TABLE = 50
    """How many inputs are given by position; the parameter of each argument of a return-style call, and of one in
    place."""
    PLACE_TABLE = 51
    LEADING = 52
    """How many launch words come before those of arguments."""
    PLACES = 53
    """How many parameters are given by position."""
    TORCH_DEVICE = 54
    """Where in the implementation its device lies, two bytes: which kind it is, and which of that kind."""
    TORCH_CUDA_PLAIN = 55
    """The dispatch keys of a plain tensor of a GPU, and of one made in inference mode; nothing where no GPU is used."""
    TORCH_CUDA_INFERENCE = 56
    CONFIG_NAME = 57
    """The keyword of a call's configuration, as the one object that Python has for it; nothing where there is none."""
    CONFIG_TYPE = 58
    """The class of configurations that are read; nothing before a call with one was learned."""
    OPTIONS = 59
    """How many slots of a configuration calls are told apart by, and where in it each lies."""
    OPTION_TABLE = 60


class Group(IntEnum):
    """The words of a group: entries whose keys have as many words and leave the same ones out."""

    WORDS = 0
    MASK = 1
    TABLE = 2
    LAST = 3


class Entry(IntEnum):
    """The words of an entry."""

    HASH = 0
    KEY = 1
    FUNCTION = 2
    NUMBER = 3
    WATCHES = 4
    WATCH_TABLE = 5
    FIELDS = 6
    """Pairs of an address and the pointer that must be there."""
    FIELD_TABLE = 7
    SCALARS = 8
    """Pairs of a launch word and its value: numbers are part of the code, and of the words it is called with."""
    SCALAR_TABLE = 9
    SAME = 10
    """Pairs of key words that must be equal: axes that go by one name."""
    SAME_TABLE = 11
    PROBES = 12
    """Quadruples of a kind of access, an object, a key and the object that must be found there."""
    PROBE_TABLE = 13
    RETURNS = 14
    """Which parameters a call gives back: how many, and their numbers. None where there are none."""
    RETURN_TABLE = 15
    RANGES = 16
    """Triples of a key word, and the smallest and largest number that it may be."""
    RANGE_TABLE = 17
    MAKERS = 18
    """Triples of a function that makes an output, its parameter, and which of the tensors it is if to be cleared."""
    MAKER_TABLE = 19
    PARALLEL = 20
    """What runs chunks side by side, on how many threads; nothing where that is as for all entries."""
    THREADS = 21
    PROGRAM = 22
    """What the function that is called is told to run, where it is not the program itself."""
    READY = 23
    """Tells whether calls may go without Python for now; nothing where they always may."""


class Watch(IntEnum):
    """The words of a watch: items of a dict that must stay, not looked at while the dict's version stays."""

    DICT = 0
    VERSION = 1
    ITEMS = 2
    ITEM_TABLE = 3
    VERSION_AT = 4
    """Where in a dict its version lies, 0 where Python has none."""


class Probe(IntEnum):
    """The kinds of accesses that are done again."""

    ATTRIBUTE = 0
    ITEM = 1
    SIZE = 2
    FILE = 3
    """The status of a file: its path, the C library's `stat`, and what some words of it are."""


FILE_WORDS = (1, 6, 11, 12)
"""Which words of a file's status are its number, its size, and the seconds and nanoseconds of its last change."""

STATUS_WORDS = 32
"""More words than a file's status has."""


class Items(IntEnum):
    """The words by which items of an object are found."""

    TUPLE = 0
    INT = 1
    NONE = 2
    COUNT = 3
    TABLE = 4
    """Pairs of a number and the item that it stands for."""
    FALLBACK = 5


class Frame(IntEnum):
    """The words of one call's bookkeeping."""

    KEY = 0
    LAUNCH = 1
    BYTES = 2
    TENSORS = 3
    FRAMEWORKS = 4
    """Whose arrays there are."""


TORCH_RANKS, TORCH_KINDS = 5, 64
"""Up to how many axes torch keeps extents and strides inside a tensor, and how many element types it may number."""

NUMPY_KINDS = 24
"""How many of NumPy's own types there are, by number."""

HASH_SEED = 0x1F83D9ABFB41BD6B
HASH_FACTOR = 0x5851F42D4C957F2D

PYTHON = (
    ("PyDict_GetItem", PTR, (PTR, PTR)),
    ("PyObject_GetAttr", PTR, (PTR, PTR)),
    ("PyObject_GetItem", PTR, (PTR, PTR)),
    ("PyObject_Size", I64, (PTR,)),
    ("Py_DecRef", "void", (PTR,)),
    ("Py_IncRef", "void", (PTR,)),
    ("PyErr_Clear", "void", ()),
    ("PyObject_IsTrue", "i32", (PTR,)),
    ("PyLong_AsLongLongAndOverflow", I64, (PTR, PTR)),
    ("PyFloat_AsDouble", "double", (PTR,)),
    ("PyObject_VectorcallDict", PTR, (PTR, PTR, I64, PTR)),
    ("PyLong_FromLongLong", PTR, (I64,)),
    ("PyTuple_New", PTR, (I64,)),
    ("PyEval_SaveThread", PTR, ()),
    ("PyEval_RestoreThread", "void", (PTR,)),
    ("memset", PTR, (PTR, "i32", I64)),
)
"""What it calls of Python, and of C: name, result, parameters."""
