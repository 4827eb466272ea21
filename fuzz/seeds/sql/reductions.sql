SELECT id, ragged_sum(l_i), ragged_mean(ll_f, -1) FROM q WHERE i < 3 ORDER BY id
