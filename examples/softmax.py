"""Softmax as a function of an array, with its gradient, and as a plan that runs in memory of your own."""

import numpy as np

import baracuda as bc
import baracuda.functional as F

x = np.random.default_rng(0).standard_normal((4, 1000), np.float32)

# torch's name and arguments; a torch tensor would give a torch tensor.
y, pull = bc.vjp(F.softmax, x, -1)
dx = pull(y)

# A kernel is chosen once, and then run as often as you like: nothing is allocated, copied or compiled.
plan = bc.plan(bc.SoftmaxDescriptor("softmax", x.shape, axis=-1))
out = np.empty_like(x)
plan.run(x=x, y=out)
assert np.array_equal(out, y)

# The same with its arguments checked once, too: 60 ns a call besides the kernel.
call = plan.bind(x=x, y=out)
call()

print(plan.sku, "|", plan.precision_guarantee)
