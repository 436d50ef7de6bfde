"""Methods for rows that are on several machines: sums over shards, and what is done with them.

`shard` is what a machine does with its rows, `sums` the problem as the driver sees it, `driver`
the loop. `newton`, `directions`, `sparse` and `lines` are the methods.
"""
