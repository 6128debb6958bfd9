"""Plans in an executor: its own pool of memory, and sizes that are known only when a batch arrives."""

import numpy as np

import baracuda as bc

MOST, IN, OUT = 256, 64, 128
rng = np.random.default_rng(0)
weight, bias = rng.standard_normal((IN, OUT), np.float32), np.zeros(OUT, np.float32)

# Kernels are chosen for all numbers of rows up to 256.
rows = bc.Dim("rows", max=MOST)
linear = bc.plan(bc.MatmulDescriptor((rows, IN), (IN, OUT), bias=True, activation="gelu"))
softmax = bc.plan(bc.SoftmaxDescriptor("softmax", (rows, OUT)))

# One block for what lies between the steps, and behind it for what a kernel needs meanwhile.
between = MOST * OUT * 4
pool = bc.empty(between + max(linear.workspace_size, softmax.workspace_size), "u8")

for n in (1, 7, 256):
    x, y = rng.standard_normal((n, IN), np.float32), np.empty((n, OUT), np.float32)
    hidden = bc.from_pointer(pool.address, (n, OUT), "f32", owner=pool)  # any address that your allocator gives
    scratch = pool[between : between + linear.workspace_for(rows=n)]
    linear.run(a=x, b=weight, bias=bias, out=hidden, workspace=scratch)
    softmax.run(x=hidden, y=y)
    print(n, "rows,", scratch.nbytes, "bytes of scratch, the first row adds up to", y[0].sum())
