"""executorch.py - ExecuTorch's memory planning by amphora.

    from executorch.exir.capture import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass
    program = edge.to_executorch(ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(
            memory_planning_algo=plan)))

`plan` has the shape of ExecuTorch's algorithms (exir/memory_planning.py): specs
with a lifetime of nodes, both ends included, get a place in the buffer `mem_id`
(1, unless a spec says otherwise). Needs python/amphora_planner.
"""
import amphora_planner


def result_types():
    """MemoryAlgoResult and SpecAllocResult, ExecuTorch's own."""
    from executorch.exir import memory_planning
    return memory_planning.MemoryAlgoResult, memory_planning.SpecAllocResult


def plan(alignment, specs, graph_module, graph_signature, extra_padding=0,
         types=None, seconds=0.0):
    Result, Place = types or result_types()
    before = list(getattr(graph_module, "input_mem_buffer_sizes", None)
                  or [0, 0])
    by_buffer = {}
    for spec in sorted(specs, key=lambda s: tuple(s.lifetime)):
        spec.realign(alignment)
        by_buffer.setdefault(spec.mem_id or 1, []).append(spec)
    result = Result({}, before)
    for mem_id, group in sorted(by_buffer.items()):
        before += [0] * (mem_id + 1 - len(before))
        start = -(-before[mem_id] // alignment) * alignment
        found = amphora_planner.place(
            [spec.lifetime[0] for spec in group],
            [spec.lifetime[1] + 1 for spec in group],
            [spec.allocated_memory for spec in group],
            alignments=[alignment] * len(group), seconds=seconds)
        for number, (spec, offset) in enumerate(zip(group, found.offsets)):
            result.spec_dict[spec] = Place(mem_id, number, start + offset)
        before[mem_id] = start + found.height + extra_padding
    return result
