"""A folder per op family: specs, functions and references; imported only when one of their names is used."""
