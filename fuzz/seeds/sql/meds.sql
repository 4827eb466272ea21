SELECT count(*) AS n FROM meds('tests/data/tiny-meds')
