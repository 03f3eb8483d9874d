"""One of three processes: every case of hand-written kernels between ranks."""

from unit.pto.rank_kernels import CASES, is_right

for name in CASES:
    print(f"{name}: {'right' if is_right(name, 'cpu') else 'wrong'}", flush=True)
