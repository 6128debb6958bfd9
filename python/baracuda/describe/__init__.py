"""What an op and its arguments are: elements, sizes, specs, promotion, and the errors that name what is wrong with them."""
