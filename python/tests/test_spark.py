"""Spark data frames: training, questions, a stage of a pipeline, on two local threads."""

import os
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal

import guide
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from table import QUICK as QUICK_FIT
from table import cut, table

from sumout import batches, spark
from sumout.spark import TMMEstimator, TMMModel

QUICK = QUICK_FIT | {"rounds": 3}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("sumout")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def files(session, tmp_path_factory):
    """The table as four Parquet files, each of which becomes a partition."""
    folder = tmp_path_factory.mktemp("table")
    frame, labels = table()
    frame["label"] = labels
    for number, part in enumerate(cut(frame)):
        rows = pa.Table.from_pandas(part, preserve_index=False)
        pa.parquet.write_table(rows, folder / f"part-{number}.parquet")
    return str(folder)


@pytest.fixture(scope="module")
def df(session, files):
    session.conf.set("spark.sql.files.openCostInBytes", str(128 << 20))  # a file, a partition
    df = session.read.parquet(files)
    assert df.rdd.getNumPartitions() == 4
    return df


@pytest.fixture(scope="module")
def model(df):
    return spark.fit(df, target="label", **QUICK)


def in_order(df):
    """The partitions of a data frame, as Spark has them."""
    rows = df.withColumn("number", sql.spark_partition_id()).toPandas()
    parts = [part.drop(columns="number") for _, part in rows.groupby("number", sort=True)]
    return [(part.drop(columns="label"), part["label"].to_numpy(object)) for part in parts]


def test_the_same_model_as_on_one_machine(df, model):
    same = batches.TMMClassifier(**QUICK).fit(in_order(df))
    assert model.model == same.model_.to_bytes()


def test_questions(df, model):
    answers = model.transform(df)
    assert answers.columns[-4:] == ["prediction", "probability", "log_likelihood", "completed"]
    rows = answers.toPandas()
    known = rows["label"].notna()
    assert (rows["prediction"] == rows["label"])[known].mean() > 0.93
    plain = rows[["size", "count", "town", "noise"]]
    posterior = np.array(rows["probability"].tolist())
    assert (posterior == model.estimator.predict_proba(plain)).all()
    assert (rows["log_likelihood"] == model.estimator.score_samples(plain)).all()
    completed = answers.select("completed.*")
    assert completed.where("size is null or count is null or town is null").count() == 0
    seen = answers.where("size is not null").select(sql.expr("size = completed.size")).distinct()
    assert [row[0] for row in seen.collect()] == [True]
    few = model.copy().setOutputs(["log_likelihood"]).transform(df)
    assert few.columns == [*df.columns, "log_likelihood"]
    assert model.classes == ["no", "yes"]


def test_a_pipeline_that_is_saved_and_loaded(df, model, tmp_path):
    stage = TMMEstimator(target="label").setParameters(**QUICK)
    stage.save(str(tmp_path / "stage"))
    stage = TMMEstimator.load(str(tmp_path / "stage"))
    fitted = Pipeline(stages=[stage]).fit(df)
    assert fitted.stages[0].model == model.model
    fitted.save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    assert isinstance(again.stages[0], TMMModel) and again.stages[0].model == model.model
    assert again.transform(df).select("prediction").count() == 1200


def every_type(rows=400):
    """A column of every type, each with a null."""
    random = np.random.default_rng(3)
    hidden = random.integers(0, 2, rows)
    day, moment = date(2024, 1, 1), datetime(2024, 1, 1, 12)
    for row, h in enumerate(hidden.tolist()):
        cells = [
            h * 5 + row % 3,
            h * 50 + row % 7,
            h * 500 + row % 11,
            h * 5000 + row % 13,
            float(h + random.normal()),
            float(3 * h + random.normal()),
            Decimal(h * 10 + row % 5) / 4,
            ["red", "green", "blue"][(h + row % 2) % 3],
            bool(h),
            day + timedelta(days=30 * h + row % 9),
            moment + timedelta(hours=100 * h + row % 17),
            moment + timedelta(hours=100 * h + row % 19),
        ]
        cells[row % 12] = None
        yield (*cells, h)


TYPES = (
    "a tinyint, b smallint, c int, d bigint, e float, f double, g decimal(10,2), h string, "
    "i boolean, j date, k timestamp, l timestamp_ntz, y int"
)


def test_a_column_of_every_type(session, tmp_path):
    df = session.createDataFrame(list(every_type()), TYPES).repartition(3)
    df.write.parquet(str(tmp_path / "types"))
    df = session.read.parquet(str(tmp_path / "types"))
    df = df.union(df.where("c < 0"))  # partitions without a row
    model = spark.fit(df, target="y", **QUICK)
    answers = model.transform(df)
    kinds = dict(answers.select("completed.*").dtypes)
    assert [kinds[name] for name in "abcdg"] == ["double"] * 5
    unchanged = {name: kind for name, kind in df.dtypes if name in "efhijkl"}
    assert {name: kinds[name] for name in unchanged} == unchanged
    rows = answers.select("y", "prediction", "completed.*").collect()
    assert all(cell is not None for row in rows for cell in row)
    assert np.mean([row.y == row.prediction for row in rows]) > 0.95
    truth = spark.fit(df, target="i", features=list("abc"), **QUICK).transform(df)
    assert dict(truth.dtypes)["prediction"] == "boolean"
    assert all(type(row.prediction) is bool for row in truth.select("prediction").collect())
    density = spark.fit(df, features=list("abh"), **QUICK | {"em_passes": 1, "rounds": 0})
    assert density.transform(df).columns[-2:] == ["log_likelihood", "completed"]


def test_what_is_wrong_is_said_where_it_is(session, df, model):
    with pytest.raises(ValueError, match="column 'nothing': expected one of"):
        spark.fit(df, target="nothing")
    with pytest.raises(TypeError, match="column 'list': expected numbers.* got array<int>"):
        spark.fit(df.withColumn("list", sql.array(sql.lit(1))), target="label")
    with pytest.raises(ValueError, match="column 'town': expected by the model"):
        model.transform(df.drop("town"))
    with pytest.raises(ValueError, match="column 'completed': expected no such column"):
        model.transform(df.withColumn("completed", sql.lit(1)))
    with pytest.raises(ValueError, match="outputs: expected some of .* got 'price'"):
        model.setOutputs(["price"])
    infinite = df.withColumn("size", sql.expr("if(town = 'Celle', double('inf'), size)"))
    with pytest.raises(ValueError, match=r"^partition \d: column 'size', row index \d+: expected"):
        spark.fit(infinite, target="label", **QUICK)
    unknown = df.withColumn("town", sql.expr("if(town = 'Celle', 'Dresden', town)"))
    with pytest.raises(Exception, match=r"partition \d: column 'town', row .* got 'Dresden'"):
        model.transform(unknown).collect()


def test_a_worker_without_the_package(df, monkeypatch):
    def without_package(batches):
        raise ModuleNotFoundError("No module named 'sumout'")

    with (
        pytest.raises(RuntimeError, match="a Spark worker has no package 'sumout'"),
        spark.plain_errors(),
    ):
        df.mapInArrow(without_package, df.schema).count()


def test_a_driver_without_memory(session, df):
    settings = session.sparkContext._jsc.sc().conf()
    settings.set("spark.driver.maxResultSize", "4k")
    try:
        with pytest.raises(RuntimeError, match="the Spark driver has too little memory"):
            spark.fit(df, target="label", **QUICK)
    finally:
        settings.set("spark.driver.maxResultSize", "1g")


def test_the_block_of_the_guide(session):
    assert guide.run("beyond-one-machine.md", "from sumout import spark") == 1
