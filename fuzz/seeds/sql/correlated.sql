SELECT id, (SELECT max(o.id) FROM o WHERE o.i = q.i) AS m FROM q WHERE EXISTS (SELECT 1 FROM o WHERE o.s = q.s)
