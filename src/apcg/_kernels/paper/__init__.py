"""Steps of the paper's methods and of those of other papers."""
