SELECT q.id, o.g_i FROM q JOIN o ON q.i = o.i ORDER BY q.id, o.id LIMIT 5
