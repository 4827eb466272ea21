SELECT dok_get('tests/data/tiny-dok/m.safetensors', i, i) AS v FROM q
