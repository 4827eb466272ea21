SELECT ragged_filter(l_i, l_i > 1), ragged_take(g_s, ragged_argsort(g_i)) FROM q
