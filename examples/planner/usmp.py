"""usmp.py - TVM's unified static memory planner by amphora.

    tvm.register_func("tir.usmp.algo.amphora", plan)
    with tvm.transform.PassContext(config={
            "tir.usmp.enable": True, "tir.usmp.custom_algorithm": "amphora"}):
        ...

`plan` has the shape of TVM's algorithms: an array of BufferInfo (size_bytes,
alignment, conflicts, pool_candidates) and the memory pressure in, a map from
each to its PoolAllocation out. Conflicts are a list there, not lives: they are
handed on as such. Needs python/amphora_planner.
"""
import amphora_planner


def allocation_type():
    from tvm.tir import usmp
    return usmp.utils.PoolAllocation


def place_in(pool, group, seconds):
    """Offsets; None where the pool is too small."""
    index = {id(info): i for i, info in enumerate(group)}
    pairs = {tuple(sorted((i, index[id(other)])))
             for i, info in enumerate(group) for other in info.conflicts
             if id(other) in index and id(other) != id(info)}
    size = getattr(pool, "size_hint_bytes", -1)
    if size is None or int(size) < 0:
        size = 0
    try:
        return amphora_planner.place(
            None, None, [int(info.size_bytes) for info in group],
            capacity=int(size), lowest=True,
            alignments=[int(info.alignment) for info in group],
            conflicts=sorted(pairs), seconds=seconds).offsets
    except (amphora_planner.Infeasible, amphora_planner.Undecided):
        return None


def plan(buffers, memory_pressure, allocation=None, seconds=0.0):
    """Each in the first of its pools; where they do not fit, the largest goes
    on to its next."""
    del memory_pressure  # a bound that the planner finds by itself
    allocation = allocation or allocation_type()
    choice = {id(info): 0 for info in buffers}
    result, pools = {}, []
    for info in buffers:
        pools += [p for p in info.pool_candidates
                  if not any(p is q for q in pools)]
    for pool in pools:
        group = [info for info in buffers
                 if choice[id(info)] < len(info.pool_candidates)
                 and info.pool_candidates[choice[id(info)]] is pool]
        while group:
            offsets = place_in(pool, group, seconds)
            if offsets is not None:
                for info, offset in zip(group, offsets):
                    result[info] = allocation(pool, offset)
                break
            able = [info for info in group
                    if choice[id(info)] + 1 < len(info.pool_candidates)]
            if not able:
                raise MemoryError("the buffers do not fit into their pools")
            largest = max(able, key=lambda info: int(info.size_bytes))
            choice[id(largest)] += 1
            group = [info for info in group if info is not largest]
    if len(result) < len(buffers):
        raise MemoryError("pools in another order for each buffer")
    return result
