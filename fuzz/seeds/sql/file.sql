SELECT * FROM 'tests/data/tiny-codes/codes.parquet' LIMIT 3
