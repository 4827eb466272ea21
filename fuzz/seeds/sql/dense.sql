SELECT densify(l_f, [3]), ragged_pad(ll_i, 2) FROM q WHERE i > 0
