"""Facts of the random family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import CODES, RANDOM, Facts, W, X, because, call, ones, ramp

FACTS = Facts(
    category="random",
    samples={
        "beta": call(X * X, W * W),
        "beta_": call(X.copy(), 2.0, W * W),
        "binomial": call(X * X, np.float32(0.5) * np.ones_like(X)),
        "binomial_": call(X.copy(), 40, 0.5),
        "gamma": call(X * X, 2.0),
        "gamma_": call(X.copy(), 2.0),
        "normal": call(0.0, 1.0, (3, 2), dtype="f16"),
        "poisson": call(X * X),
        "poisson_": call(X.copy(), 12.0),
        "rand": call(2, 3),
        "randint": call(3, 9, (2, 4)),
        "randint_like": call(X, 9),
        "randn": call((2, 3), dtype="f64"),
        "random_": call(CODES.copy(), 0, 5),
        "randperm": call(7),
        "uniform": call(0.0, 1.0, (3, 2)),
    },
    steps={
        "beta_": [call(ramp(3), 2.0, 3.0)],
        "binomial_": [call(ones(3), 5, 0.5)],
        "cauchy_": [call(ramp(3).astype(np.float16))],
        "exponential_": [call(ramp(3).astype(np.float16))],
        "gamma": [call(ramp(3) ** 2, 2.0)],
        "gamma_": [call(ramp(3), 2.0, 3.0)],
        "geometric_": [call(ones(3), 0.5)],
        "gumbel_max": [call(ramp(2, 3).astype(np.float16)), call(ramp(2, 3).astype(np.float16), 2.0)],
        "gumbel_softmax": [call(ramp(2, 3).astype(np.float16), hard=True)],
        "laplace_": [call(ramp(3).astype(np.float16))],
        "log_normal_": [call(ramp(3).astype(np.float16))],
        "poisson_": [call(ones(3), 3.0)],
        "rand": [call(3)],
        "rand_like": [call(ramp(2, 5))],
        "randint_like": [call(ramp(3), 5)],
        "randn": [call(3)],
        "randn_like": [call(ramp(2, 5))],
        "random_": [call(ramp(3), 0, 9)],
        "trunc_normal_": [
            call(ramp(3).astype(np.float16)),
            call(ramp(3), a=8.0, b=10.0),
            call(ramp(3).astype(np.float16), a=8.0, b=10.0),
        ],
    },
    alone=because(
        RANDOM,
        "bernoulli bernoulli_ multinomial randint random_ randperm dropout normal normal_ uniform uniform_ rand "
        "rand_like randn randn_like randint_like gumbel_max laplace_ gamma beta poisson binomial gamma_ beta_ poisson_ "
        "binomial_ exponential_ cauchy_ geometric_ log_normal_ trunc_normal_ gumbel_softmax",
    ),
)
