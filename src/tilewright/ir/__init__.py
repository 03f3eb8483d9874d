"""`tilewright.ir`: the IR for people who build compilers, under the names the PTO family uses."""

from tilewright.runtime.compiler import compile as compile
