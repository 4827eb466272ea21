SELECT ragged_encode(l_s, 'tests/data/tiny-codes'), descendants('ICD10CM/E11', 'tests/data/tiny-codes') FROM q
