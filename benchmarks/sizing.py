"""Set our sizings beside llm-analysis 0.2.2 and published points of InferSim and AIConfigurator; write ``sizing.json``.

    python benchmarks/sizing.py [--quick]

llm-analysis answers the same questions here, in one run, in an environment of its own, ``.venv-llm-analysis``, that the
first run makes: bytes of weights and cache, the prefill of a batch and a step of decoding, each beside ours, and the
processor time of the first answer of a fresh interpreter and of further ones. Its times are its defaults, all of the
peak and of the bandwidth, so that ratios of times say how far an estimate is from its bound; ``peak_tflops`` says which
peak it takes.

InferSim and AIConfigurator print comparisons that need their kernel tables and machines; these points are stored here
as they print them, with what they are, and ours are computed for the same question. Measured are the rows of InferSim;
those of AIConfigurator are its predictions. Not compared: InferSim's DeepSeek-V3 on H800, of which no device is
recorded here, with two batches overlapped, which is not modelled.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import run  # the neighbour, which makes our environment

from mlsys.files import write_text

HERE = Path(__file__).resolve().parent
VENV = HERE.parent / ".venv-llm-analysis"
PYTHON = VENV / "bin" / "python"
PACKAGES = ["llm-analysis==0.2.2"]
# Our name, theirs; and of chips.
MODELS = [
    ("gpt2-xl", "gpt2-xl"), ("gpt-j-6b", "EleutherAI_gpt-j-6b"), ("opt-6.7b", "facebook_opt-6.7b"),
    ("llama-2-7b", "NousResearch_Llama-2-7b-hf"), ("bloom-7.1b", "bigscience_bloom-7b1"),
    ("llama-13b", "decapoda-research_llama-13b-hf"),
]  # fmt: skip
CHIPS = [("A100_80GB", "a100-sxm-80gb"), ("H100_SXM", "h100-sxm-80gb")]
BATCHES = [1, 16]
PROMPT, OUTPUT = 896, 128
CALL = """
questions = json.loads(sys.argv[1])
rows, first = [], None
for question in questions:
    rows.append(answer(*question))
    first = first or time.process_time() - start
begin = time.process_time()
for question in questions:
    answer(*question[:2], 1 + question[2], *question[3:])
print(json.dumps({"rows": rows, "first": first, "further": (time.process_time() - begin) / len(questions)}))
"""
"""What both programs do with `answer`: time the first question, and others after it."""
OURS = """
import json, sys, time
start = time.process_time()
from mlsys import size
def answer(model, chip, batch, prompt, output):
    both = size(model, chip, tp=1, pp=1, ep=1, batch=batch, prompt=prompt, output=output)
    return {"weights": both.weight_bytes, "cache": both.kv_cache_bytes, "decode": both.tpot_seconds,
            "prefill": batch * both.ttft_seconds}
"""
PEER = """
import json, sys, time
start = time.process_time()
from llm_analysis.analysis import infer
from llm_analysis.config import get_gpu_config_by_name
def answer(model, chip, batch, prompt, output):
    result = infer(model_name=model, gpu_name=chip, dtype_name="w16a16e16", log_level="ERROR", batch_size_per_gpu=batch,
                 seq_len=prompt, num_tokens_to_generate=output)
    return {"weights": result["weight_memory_per_gpu"], "cache": result["kv_cache_memory_per_gpu"],
            "decode": result["decode_latency"], "prefill": result["prefill_latency"],
            "peak_tflops": get_gpu_config_by_name(chip).peak_fp16_TFLOPS}
"""
INFERSIM = "alibaba/InferSim@f2293dab, README.md, Simulation Result, and example/ (Apache-2.0), read 2026-11-29"
CONFIGURATOR = "ai-dynamo/aiconfigurator@0253f8e2, README.md, example of Qwen3-32B (Apache-2.0), read 2026-11-29"
_QWEN = {"weight_format": "fp8", "kv_format": "fp8", "prompt": 4000, "output": 500, "tp": 4, "pp": 1}
# Arguments of mlsys.size, which member answers, what was measured, and what the tool predicted.
POINTS: list[tuple[str, str, str, dict[str, Any], str, float | None, float]] = [
    ("InferSim", "Qwen3-8B FP8 on H20, prefill, tokens/s a chip", INFERSIM,
     {"model": "qwen3-8b", "on": "H20", "weight_format": "fp8", "sequence": 4096, "phase": "prefill"},
     "tokens_per_second_per_chip", 15061, 16328),
    ("InferSim", "Qwen3-8B FP8 on H20, 64 sequences decoded, tokens/s a chip", INFERSIM,
     {"model": "qwen3-8b", "on": "H20", "weight_format": "fp8", "prompt": 4096, "output": 2048, "batch": 64,
      "phase": "decode"}, "tokens_per_second_per_chip", 2682, 2581),
    ("InferSim", "Qwen3-30B-A3B on H20, prefill, tokens/s a chip", INFERSIM,
     {"model": "qwen3-30b-a3b", "on": "H20", "sequence": 4096, "phase": "prefill"},
     "tokens_per_second_per_chip", 16594, 17350),
    ("InferSim", "Qwen3-30B-A3B on 4 H20, 100 sequences a chip decoded, experts divided, tokens/s a chip", INFERSIM,
     {"model": "qwen3-30b-a3b", "on": "HGX_H20", "prompt": 4096, "output": 2048, "batch": 400, "phase": "decode",
      "tp": 1, "pp": 1, "ep": 4, "dp": 4}, "tokens_per_second_per_chip", 2749, 2632),
    ("AIConfigurator", "Qwen3-32B FP8 on H200, prefill of 4,000 tokens, s", CONFIGURATOR,
     {"model": "qwen3-32b", "on": "H200", "weight_format": "fp8", "kv_format": "fp8", "sequence": 4000},
     "ttft_seconds", None, 0.27676),
    *[("AIConfigurator", f"Qwen3-32B FP8 on 4 H200, {batch} sequences decoded alone, tokens/s a sequence", CONFIGURATOR,
       {"model": "qwen3-32b", "on": "DGX_H200", **_QWEN, "batch": batch, "phase": "decode"},
       "tokens_per_second_per_user", None, reported)
      for batch, reported in ((60, 120.23), (56, 122.69), (52, 125.26), (48, 127.90), (44, 128.44))],
    *[("AIConfigurator", f"Qwen3-32B FP8 on 4 H200, {batch} sequences, prefill and decode, tokens/s a chip",
       CONFIGURATOR, {"model": "qwen3-32b", "on": "DGX_H200", **_QWEN, "batch": batch}, "tokens_per_second_per_chip",
       None, reported)
      for batch, reported in ((20, 478.57), (16, 429.39), (14, 398.29), (13, 377.31), (11, 339.51))],
]  # fmt: skip


def questions(which: int) -> list[list[Any]]:
    """Return the questions with our names (0) or theirs (1)."""
    return [
        [model[which], chip[which], batch, PROMPT, OUTPUT] for model in MODELS for chip in CHIPS for batch in BATCHES
    ]


def answers_of(python: str, script: str, which: int, rounds: int) -> dict[str, Any]:
    """Return the answers of a fresh interpreter, with the medians of its times over the rounds."""
    reported = []
    for _ in range(rounds):
        done = subprocess.run(
            [python, "-c", script, json.dumps(questions(which))], capture_output=True, text=True, check=True,
            cwd=HERE if which == 0 else VENV,
        )  # fmt: skip
        reported.append(json.loads(done.stdout.splitlines()[-1]))
    return {**reported[0], **{key: statistics.median(each[key] for each in reported) for key in ("first", "further")}}


def published() -> list[dict[str, Any]]:
    """Return the published points with our answers."""
    from mlsys import Hardware, size
    from mlsys.hardware import load_system

    Hardware.load(HERE / "h20.yaml")
    own = {"HGX_H20": load_system(HERE / "hgx_h20.yaml")}
    rows = []
    for tool, what, source, question, member, measured, predicted in POINTS:
        answer = float(getattr(size(**{**question, "on": own.get(question["on"], question["on"])}), member))
        row = {
            "tool": tool, "what": what, "measured": measured, "tool_says": predicted, "we_say": float(f"{answer:.4g}"),
            "we_over_tool": float(f"{answer / predicted:.3f}"), "source": source,
        }  # fmt: skip
        if measured is not None:
            row |= {
                "we_over_measured": float(f"{answer / measured:.3f}"),
                "tool_over_measured": float(f"{predicted / measured:.3f}"),
            }
        rows.append(row)
    return rows


def main() -> None:
    """Parse the command line and do what it asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, write nothing")
    quick = parser.parse_args().quick
    if not PYTHON.exists():
        print(f"Making {VENV.name} ...", file=sys.stderr)
        venv.create(VENV, with_pip=True)
        subprocess.run([str(PYTHON), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    rounds = 1 if quick else 3
    run.prepare()  # each in an environment of its own, without extras such as Dask, which pint would import
    ours, theirs = (
        answers_of(str(run.PYTHON), OURS + CALL, 0, rounds),
        answers_of(str(PYTHON), PEER + CALL, 1, rounds),
    )
    kinds = ("weights", "cache", "prefill", "decode")
    rows = [
        {
            "model": question[0], "chip": question[1], "batch": question[2], "peak_tflops": peer["peak_tflops"],
            **{f"{key}_ratio": float(f"{own[key] / peer[key]:.4f}") for key in kinds},
        }
        for question, own, peer in zip(questions(0), ours["rows"], theirs["rows"], strict=True)
    ]  # fmt: skip
    medians = {
        f"{key}, mlsys / llm-analysis, median": float(f"{statistics.median(row[f'{key}_ratio'] for row in rows):.4f}")
        for key in kinds
    }
    speed = {
        f"{key} answer, llm-analysis / mlsys, processor time": float(f"{theirs[key] / ours[key]:.3g}")
        for key in ("first", "further")
    }
    points = published()
    for name, ratio in {**medians, **speed}.items():
        print(f"{name:<60} {ratio:8.3f}")
    for row in points:
        beside = (
            f"{row['we_over_measured']:.2f} of measured, tool {row['tool_over_measured']:.2f}"
            if row["measured"]
            else ""
        )
        print(f"{row['tool']:<15} {row['what']:<88} {row['we_over_tool']:.2f} of the tool's; {beside}")
    result = {
        "packages": PACKAGES,
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": [round(each, 2) for each in os.getloadavg()],
        "prompt": PROMPT,
        "output": OUTPUT,
        "cpu_seconds": {
            name: {key: float(f"{one[key]:.3g}") for key in ("first", "further")}
            for name, one in (("mlsys", ours), ("llm-analysis", theirs))
        },
        "ratios": {**medians, **speed},
        "rows": rows,
        "published": points,
    }
    if not quick:
        write_text(HERE / "sizing.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
