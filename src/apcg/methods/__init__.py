"""The methods. Each has `epoch(order)`, one step on each block of `order`, and `x`, its answer."""
