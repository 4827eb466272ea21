SELECT ragged_map(ll_i, lambda v: v * 2 + 1) AS x FROM q
