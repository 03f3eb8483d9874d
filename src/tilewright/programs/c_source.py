"""C sources: the header of an exported program, and the code behind it."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.programs import c_names
from tilewright.programs.c_function import CFunction, Refusals

FEATURES = ("avx2", "fma", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
"""What every C compiler can ask a processor about."""

TILES = " && syscall(SYS_arch_prctl, 0x1023, 18) == 0"
"""How a process asks Linux for AMX's tiles, which fails where there are none."""

HELPERS = r"""
extern void parallel(void (*)(void *, int64_t), void *, int64_t, int64_t *);
extern void serial(void (*)(void *, int64_t), void *, int64_t, int64_t *);
extern int64_t threads;

/* As many threads as TILEWRIGHT_NUM_THREADS says, or as there are processors for us. */
__attribute__((constructor)) static void tw_start(void)
{
    const char *text = getenv("TILEWRIGHT_NUM_THREADS");
    cpu_set_t set;
    threads = text ? strtoll(text, NULL, 10) : sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

static int tw_supported(void)
{
    __builtin_cpu_init();
    return 1@SUPPORTED@;
}

static int64_t tw_float(float value)
{
    int64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}

static int64_t tw_double(double value)
{
    int64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}

static int64_t tw_div(int64_t a, int64_t b)
{
    return b ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
}

static int64_t tw_mod(int64_t a, int64_t b)
{
    return a - tw_div(a, b) * b;
}

static int tw_run(void (*entry)(int64_t *, int64_t *), int64_t *words)
{
    int64_t context[11] = {threads > 1 ? (int64_t)(intptr_t)parallel : (int64_t)(intptr_t)serial, [6] = threads};
    entry(words, context);
    for (void *buffer = (void *)(intptr_t)context[2]; buffer != NULL;) {
        void *next = *(void **)buffer;
        free(buffer);
        buffer = next;
    }
    return (int)context[1];
}
"""


def header(name: str, functions: Sequence[CFunction]) -> str:
    """Return the header that a C program includes."""
    guard = f"TILEWRIGHT_{name.upper()}_H"
    declared = "\n".join(f"{_comment(function)}\n{function.declaration()};\n" for function in functions)
    return f"""/* {name}: made by tilewright; link with -l{name}. */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{declared}
/* The meaning of a status. */
const char *{name}_error(int status);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _comment(function: CFunction) -> str:
    types = [(param.name_hint, param.type) for param in function.entry.params]
    shown = "\n".join(f"   {name}: {type_}" for name, type_ in types)
    promise = "Tensors are packed and row-major, and none overlaps one that is written. Returns 0 or a status."
    return f"/* {promise}\n{shown} */"


def source(name: str, functions: Sequence[CFunction], errors: Sequence[str], features: Sequence[str]) -> str:
    """Return the code behind the header; `errors` are what a running program reports by number."""
    refusals = Refusals()
    defined = "\n".join(function.definition(refusals) for function in functions)
    declared = "\n".join(f"extern void {function.symbol}(int64_t *, int64_t *);" for function in functions)
    supported = "".join(f' && __builtin_cpu_supports("{each}")' for each in FEATURES if each in features)
    supported += TILES * ("amx-tile" in features)
    return f"""/* {name}: made by tilewright. */
#define _GNU_SOURCE
#include "{name}.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

{declared}
{HELPERS.replace("@SUPPORTED@", supported)}
{defined}
{_table("tw_errors", errors)}
{_table("tw_refusals", refusals.messages)}
const char *{name}_error(int status)
{{
    if (status == 0) return "no error";
    if (0 < status && status <= {len(errors)}) return tw_errors[status - 1];
    if (-{len(refusals.messages)} <= status && status < 0) return tw_refusals[-1 - status];
    return "no such status";
}}
"""


def _table(name: str, texts: Sequence[str]) -> str:
    rows = "".join(f"    {c_names.string(text)},\n" for text in [*texts, ""])
    return f"static const char *const {name}[] = {{\n{rows}}};\n"
