SELECT i, count(*) AS n, ragged_nest_agg(l_s ORDER BY id) AS s FROM q GROUP BY i ORDER BY i
