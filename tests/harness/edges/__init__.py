"""Gradients where formulas end: at zeros, infinities, ties and the ends of the range."""
