SELECT id, lag(l_i) OVER (ORDER BY id) AS previous, sum(i) OVER (PARTITION BY b ORDER BY id) FROM q
