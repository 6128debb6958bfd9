"""One module per op family; imported only when one of its names is used."""
