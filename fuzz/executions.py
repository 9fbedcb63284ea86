"""Runs targets under libFuzzer, one after the other, and says how often each was executed.

    cargo run --release -p sumout-fuzz --features parquet --example write_seeds corpus
    python3 fuzz/executions.py --runs 10000000 --seconds 600 corpus csv json_lines npy npz png idx norb sound

A target ends after so many executions or seconds, whichever comes first. What libFuzzer finds stays in the corpus.
"""

import argparse
import re
import subprocess

BUILD = "cargo +nightly fuzz build --fuzz-dir fuzz/libfuzzer --sanitizer none"
RUN = "cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer --sanitizer none"


def run(target, given):
    limits = [f"-runs={given.runs}", f"-max_total_time={given.seconds}", f"-max_len={given.max_len}"]
    command = [*RUN.split(), *given.options, target, f"{given.corpus}/{target}", "--"]
    ended = subprocess.run([*command, *limits, "-print_final_stats=1"], capture_output=True, text=True)
    figure = lambda name: int(re.findall(rf"{name}: *(\d+)", ended.stderr)[-1])  # noqa: E731
    executed, rate = figure("number_of_executed_units"), figure("average_exec_per_sec")
    reached = re.findall(r"cov: (\d+)", ended.stderr)[-1]
    print(f"{target:12} {executed:12,} executions, {rate:7,} a second, {reached} edges, exit {ended.returncode}", flush=True)
    if ended.returncode:
        print(ended.stderr[-3000:])
    return ended.returncode


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--runs", type=int, default=1_000_000)
    arguments.add_argument("--seconds", type=int, default=600)
    arguments.add_argument("--max-len", type=int, default=1024)
    arguments.add_argument("--options", type=str.split, default=[], help="of cargo fuzz, such as '--no-default-features'")
    arguments.add_argument("corpus")
    arguments.add_argument("targets", nargs="+")
    given = arguments.parse_args()
    subprocess.run([*BUILD.split(), *given.options], check=True, capture_output=True)
    failed = [target for target in given.targets if run(target, given)]
    raise SystemExit(f"failed: {failed}" if failed else 0)


if __name__ == "__main__":
    main()
