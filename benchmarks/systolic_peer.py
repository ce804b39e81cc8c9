"""Run SCALE-Sim on the cases of ``systolic.py``, inside the environment that has it; print seconds as JSON."""

import contextlib
import io
import json
import statistics
import sys
import time

from scalesim.layout_utils import layouts
from scalesim.scale_config import scale_config
from scalesim.single_layer_sim import single_layer_sim
from scalesim.topology_utils import topologies


def seconds(m, n, k, rows, columns, dataflow, kilobytes):
    config, topology, layer = scale_config(), topologies(), single_layer_sim()
    with contextlib.redirect_stdout(io.StringIO()):
        config.update_from_list(
            ["bench", rows, columns, *[kilobytes] * 3, 0, 10_000_000, 20_000_000, dataflow, "CALC", [10]]
        )
        topology.append_topo_arrays(layer_name="gemm", elems=[str(x) for x in ("gemm", m, k, 1, k, 1, n, 1, 1, 1, 1)])
        topology.num_layers, topology.topo_load_flag = 1, True
        layer.set_params(layer_id=0, config_obj=config, topology_obj=topology, layout_obj=layouts(), verbose=False)
        start = time.process_time()
        layer.run()
        taken = time.process_time() - start
        layer.calc_report_data()
    return taken, int(layer.total_cycles)


answers = []
for *case, rounds in json.loads(sys.argv[1]):
    runs = [seconds(*case) for _ in range(rounds)]
    answers.append({"seconds": statistics.median(run[0] for run in runs), "total_cycles": runs[0][1]})
print(json.dumps(answers))
