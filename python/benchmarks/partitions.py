"""What Dask and Spark cost beside the bare engine: rows scored in a second, seconds a step.

    python python/benchmarks/partitions.py 100000 1000000

The table has 30 columns: 20 of numbers, 10 of categories, a tenth of the cells missing. Every line
is one JSON object. Partitions have 50,000 rows; there are two workers of one thread each.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import SparkSession

from sumout import _engine, batches, spark
from sumout.dask import DaskPartitions, TMMClassifier
from sumout.partitions import contribution, encoded, read

PART = 50_000
QUICK = {"random_state": 0, "steps": 200, "trees": 1, "sample_rows": 20_000, "rounds": 0}


def part(number):
    """One partition: frame and labels."""
    random = np.random.default_rng([7, number])
    hidden = random.integers(0, 4, PART)
    frame = {}
    for j in range(20):
        frame[f"n{j}"] = (random.normal(size=PART) + (hidden >> j % 2 & 1)).astype(np.float32)
        frame[f"n{j}"][random.uniform(size=PART) < 0.1] = np.nan
    for j in range(10):
        codes = (hidden + random.integers(0, 3, PART)) % (3 + j % 4)
        words = np.array(["a", "b", "c", "d", "e", "f", None], dtype=object)
        frame[f"c{j}"] = words[np.where(random.uniform(size=PART) < 0.1, 6, codes)]
    frame["y"] = hidden % 2
    return pd.DataFrame(frame)


def seconds(work, times=2):
    """The fastest of some runs."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)


def bare(model, files, step):
    """Reads a file, scores it, and contributes; on two threads."""
    scored = trained = read_files = 0.0
    for number, file in enumerate(files):
        start = time.perf_counter()
        table = pa.parquet.read_table(file)
        X, y = table.drop_columns("y"), table.column("y").to_numpy()
        read_files += time.perf_counter() - start
        start = time.perf_counter()
        model.predict_proba(X)
        scored += time.perf_counter() - start
        own = encoded(model, number, read(model, number, X, y), np.ones(2))
        start = time.perf_counter()
        contribution(step, number, own, 0)
        trained += time.perf_counter() - start
    return read_files + scored, trained


def say(rows, what, scoring, training):
    line = {"rows": rows, "what": what, "rows_per_second": round(rows / scoring)}
    print(json.dumps(line | {"seconds_per_step": round(training, 3)}), flush=True)


def measure(session, client, folder, rows):
    files = sorted(folder.glob("*.parquet"))[: rows // PART]
    model = batches.TMMClassifier(**QUICK).fit(
        (p.drop(columns="y"), p["y"]) for p in map(pd.read_parquet, files[:2])
    )
    model.n_jobs = None
    sizes = [PART] * len(files)
    step = _engine.Rounds(model.model_, sizes, [1.0, 1.0], "{}").round()
    say(rows, "engine", *bare(model, files, step))
    on_dask(client, model, files, rows, step)
    on_spark(session, model, files, rows, step)


def on_dask(client, model, files, rows, step):
    ddf = dd.read_parquet([str(file) for file in files])
    fitted = TMMClassifier(**QUICK, n_jobs=1)._open(model.model_)
    scoring = seconds(lambda: fitted.predict_proba(ddf.drop(columns="y")).mean(axis=0).compute())
    partitions = DaskPartitions(ddf, "y", 1)
    partitions.read(fitted)
    partitions.encode(fitted, np.ones(2))
    say(rows, "dask", scoring, seconds(lambda: partitions.sum(step)))


def on_spark(session, model, files, rows, step):
    df = session.read.parquet(*[str(file) for file in files])
    transformer = spark.TMMModel(model.model_.to_bytes()).setOutputs(["probability"])
    scoring = seconds(lambda: transformer.transform(df).selectExpr("avg(probability[0])").collect())
    partitions = spark.SparkPartitions(df, "y", 1)
    partitions.read(model)
    partitions.encode(model, np.ones(2))
    assert len(partitions.sample([0] * len(files), 0)) == len(files)
    say(rows, "spark", scoring, seconds(lambda: partitions.sum(step)))
    partitions.release()


def main(sizes):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.files.openCostInBytes", str(128 << 20))
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", PART).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with tempfile.TemporaryDirectory() as name, cluster, distributed.Client(cluster) as client:
        for number in range(max(sizes) // PART):
            table = pa.Table.from_pandas(part(number), preserve_index=False)
            pa.parquet.write_table(table, Path(name) / f"{number:05}.parquet")
        for rows in sizes:
            measure(session, client, Path(name), rows)
    session.stop()


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [100_000])
