EXPLAIN SELECT ragged_count(gl_t) FROM q WHERE ragged_any(l_i == 2)
