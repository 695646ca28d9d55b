# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.one_embedding: Ftrl, make_uniform_initializer, make_normal_initializer, make_constant_initializer, make_column_options, make_table_options, make_device_mem_store_options, make_cached_ssd_store_options, MultiTableMultiColumnEmbedding, MultiTableEmbedding, make_cached_host_mem_store_options, Embedding, make_table, Optimizer, SmartDecayAdam"""

from weft.optim.adam import Adam

from weft.interop.one_embedding import (
    MultiTableEmbedding as MultiTableEmbedding, MultiTableMultiColumnEmbedding as MultiTableMultiColumnEmbedding,
    with_embeddings as Optimizer, make_cached_ssd_store_options as make_cached_host_mem_store_options,
    make_cached_ssd_store_options as make_cached_ssd_store_options, make_column_options as make_column_options,
    make_constant_initializer as make_constant_initializer,
    make_device_mem_store_options as make_device_mem_store_options, make_normal_initializer as make_normal_initializer,
    make_table_options as make_table, make_table_options as make_table_options,
    make_uniform_initializer as make_uniform_initializer
)
from weft.optim.ftrl import Ftrl as Ftrl

Embedding = MultiTableMultiColumnEmbedding
SmartDecayAdam = Adam
