"""Writes the files of this folder with pyarrow: rows that span data pages of version 1, pages of version 2 with a page
index, column chunks that fall back from a dictionary, and the encodings DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT.

    python write.py FOLDER
"""
import pyarrow as pa, pyarrow.parquet as pq, random, os, sys
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
random.seed(5)
def lst(depth, leaf, pnull, longest):
    if depth == 0:
        return None if random.random() < pnull else leaf()
    if random.random() < 0.08: return None
    return [lst(depth-1, leaf, pnull, longest) for _ in range(random.choice([0,1,2,longest]))]
def table(rows, longest):
    words=lambda: random.choice([1,2,3,5,900,65535])
    t=pa.list_
    return pa.table({
      'code': pa.array([lst(2, words, 0, longest) for _ in range(rows)], t(t(pa.uint16()))),
      'val': pa.array([lst(2, lambda: random.choice([0.5,1.25,-3.0]), 0.7, longest) for _ in range(rows)], t(t(pa.float32()))),
      't': pa.array([lst(1, lambda: random.randrange(10**12), 0.1, 40) for _ in range(rows)], pa.large_list(pa.timestamp('us'))),
      'flag': pa.array([lst(2, lambda: random.random()<.5, 0.3, longest) for _ in range(rows)], t(t(pa.bool_()))),
      'id': pa.array(range(rows), pa.int64()),
      'deep': pa.array([lst(3, words, 0.3, 3) for _ in range(rows)], t(t(t(pa.int32())))),
    })
small = table(14, 30)
k = dict(row_group_size=6, store_schema=True)
pq.write_table(small, f'{out}/pages-v1.parquet', data_page_size=64, write_batch_size=7, data_page_version='1.0', compression='zstd', **k)
pq.write_table(small, f'{out}/pages-v2-index.parquet', data_page_size=64, write_batch_size=7, data_page_version='2.0', compression='snappy', write_page_index=True, **k)
pq.write_table(small, f'{out}/fallback.parquet', data_page_size=400, write_batch_size=16, dictionary_pagesize_limit=12, compression='none', **k)
pq.write_table(small.drop(['flag']), f'{out}/split-delta.parquet', use_dictionary=False, compression='lz4', data_page_version='2.0',
  column_encoding={'id':'DELTA_BINARY_PACKED','t.list.element':'DELTA_BINARY_PACKED','code.list.element.list.element':'DELTA_BINARY_PACKED','deep.list.element.list.element.list.element':'DELTA_BINARY_PACKED','val.list.element.list.element':'BYTE_STREAM_SPLIT'}, data_page_size=200, write_batch_size=32)
one = pa.table({'code': pa.array([[[random.randrange(50) for _ in range(random.randrange(40))] for _ in range(60)]], pa.list_(pa.list_(pa.uint16())))})
pq.write_table(one, f'{out}/one-row.parquet', data_page_size=100, write_batch_size=20, data_page_version='1.0', compression='zstd')
for f in sorted(os.listdir(out)):
    print(f, os.path.getsize(f'{out}/{f}'))
