WITH u AS (SELECT id, unnest(l_s) AS s FROM q) SELECT s, count(*) AS n FROM u GROUP BY s ORDER BY n DESC
