SELECT id, lag(l_i) OVER (ORDER BY id) AS before, sum(i) OVER (PARTITION BY b ORDER BY id) FROM q
