"""Facts of the expr family, whose kernels are no functions of their own; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import Facts

FACTS = Facts()
