"""Training and questions on Spark data frames, partition by partition, through Arrow.

Nulls are holes. The model does not depend on how many executors there are: the same partitions give
the same bits, and the same as `sumout.batches` from the same batches. It needs a classic Spark
session, not Spark Connect, and this package on every worker.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import RDD, StorageLevel, TaskContext, keyword_only
from pyspark.errors import PySparkException
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sumout import _engine
from sumout.batches import TMMClassifier, TMMDensity
from sumout.columns import Columns
from sumout.estimator import TMM
from sumout.loading import opened
from sumout.partitions import (
    Encoded,
    Part,
    Partitions,
    Summary,
    added,
    contribution,
    encoded,
    in_partition,
    read,
    sampled,
    split_target,
    summary,
)

# Columns that a model can hold.
KINDS = (NumericType, StringType, BooleanType, DateType, TimestampType, TimestampNTZType)

# What `transform` adds, in this order.
OUTPUTS = ("prediction", "probability", "log_likelihood", "completed")

# A partition with its number, as one cell each.
CELLS = "number int, cell binary"

Batches = Iterator[pa.RecordBatch]


# On a worker. Every function takes the batches of a partition and gives batches back.


def read_batches(estimator: TMM, target: str | None, batches: Batches) -> Batches:
    """A partition of the data frame as a `Part`, in one cell."""
    number = TaskContext.get().partitionId()
    found = list(batches)
    if found and sum(map(len, found)):
        table = without_decimals(pa.Table.from_batches(found))
        X, y = (table, None) if target is None else split_target(table, target)
        part = read(estimator, number, X, y)
    else:
        part = Part(np.empty((0, 0), np.float32), Columns([], []), False, None)
    cells = [pa.array([number], pa.int32()), pa.array([pickle.dumps(part)], pa.binary())]
    yield pa.record_batch(cells, ["number", "cell"])


def without_decimals(table: pa.Table) -> pa.Table:
    """The same table with real numbers in place of decimal ones."""
    for j, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(pa.float64()))
    return table


def part_of(row: Any) -> tuple[int, Part]:
    return row.number, pickle.loads(row.cell)


def numbered(function: Callable[[int, Any], Any], pair: tuple[int, Any]) -> tuple[int, Any]:
    """What a function says of a partition, with the partition's number."""
    number, part = pair
    return number, function(number, part)


def summary_of(number: int, part: Part) -> Summary:
    return summary(part)


def encoded_by(estimator: TMM, class_weights: np.ndarray, number: int, part: Part) -> Encoded:
    if len(part.values) == 0:
        part = part._replace(values=np.empty((0, estimator.n_features_in_), np.float32))
    return encoded(estimator, number, part, class_weights)


def sampled_from(counts: list[int], seed: int, number: int, part: Encoded) -> Encoded:
    return sampled(part, number, counts[number], seed)


def contribution_to(step: Any, threads: int, pair: tuple[int, Encoded]) -> bytes:
    number, part = pair
    return contribution(step.value, number, part, threads)


def added_pair(first: bytes, second: bytes) -> bytes:
    return added([first, second])


# On the driver.


@contextmanager
def plain_errors() -> Iterator[None]:
    """What went wrong on a worker or on the driver, in one sentence."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        if "spark.driver.maxResultSize" in text or "OutOfMemoryError" in text:
            raise RuntimeError(
                "the Spark driver has too little memory for a sample of the rows or for the sum "
                "of contributions: raise spark.driver.memory and spark.driver.maxResultSize, or "
                "lower sample_rows"
            ) from error
        if "No module named 'sumout" in text:
            raise RuntimeError(
                "a Spark worker has no package 'sumout': install it on every worker, "
                "or send it along with spark.archives"
            ) from error
        found = re.findall(r"^(?:\w+\.)*(ValueError|TypeError): (partition .*)$", text, re.M)
        if not found:
            raise
        kind, message = found[-1]
        raise (ValueError if kind == "ValueError" else TypeError)(message) from None


class SparkPartitions(Partitions):
    """Partitions in the executors' memory, or on their disks where that is too small."""

    def __init__(self, df: DataFrame, target: str | None, threads: int) -> None:
        self.df, self.target, self.threads = df, target, threads
        self.kept: RDD | None = None

    def read(self, estimator: TMM) -> list[Summary]:
        parts = self.df.mapInArrow(partial(read_batches, estimator, self.target), CELLS)
        return self.keep(parts.rdd.map(part_of), summary_of)

    def encode(self, estimator: TMM, class_weights: np.ndarray) -> None:
        encode = partial(numbered, partial(encoded_by, estimator, class_weights))
        before = self.kept
        self.keep(before.map(encode), rows_of)
        before.unpersist()

    def sample(self, counts: list[int], seed: int) -> list[Encoded]:
        return self.collected(partial(sampled_from, counts, seed))

    def sum(self, step: bytes) -> bytes:
        shared = self.df.sparkSession.sparkContext.broadcast(step)
        with plain_errors():
            parts = self.kept.map(partial(contribution_to, shared, self.threads))
            total = parts.treeReduce(added_pair)
        shared.destroy()
        return total

    def keep(self, parts: RDD, function: Callable[[int, Any], Any]) -> list:
        """Computes partitions and keeps them; what a function says of each."""
        self.kept = parts.persist(StorageLevel.MEMORY_AND_DISK)
        return self.collected(function)

    def release(self) -> None:
        """Frees the memory of the executors."""
        if self.kept is not None:
            self.kept.unpersist()

    def collected(self, function: Callable[[int, Any], Any]) -> list:
        """What a function says of every partition, in the order of their numbers."""
        with plain_errors():
            pairs = self.kept.map(partial(numbered, function)).collect()
        return [said for _, said in sorted(pairs, key=itemgetter(0))]


def rows_of(number: int, part: Encoded) -> int:
    return len(part.values)


def check_columns(df: DataFrame, features: list[str]) -> None:
    """Raises if a column cannot be in a model."""
    for field in df.select(features).schema.fields:
        if not isinstance(field.dataType, KINDS):
            kind = field.dataType.simpleString()
            raise TypeError(
                f"column {field.name!r}: expected numbers, text, booleans, dates or times, got "
                f"{kind}; leave it out of `features`"
            )


def fit(
    df: DataFrame, target: str | None = None, features: list[str] | None = None, **parameters: Any
) -> TMMModel:
    """Train on a data frame.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Rows; null is missing.
    target : str, default=None
        The column of labels. Without it, the density of the rows is learned.
    features : list of str, default=None
        The other columns that the model is about. None takes all.
    **parameters
        Those of `sumout.batches.TMMClassifier` or `TMMDensity`.

    Returns
    -------
    TMMModel
        A transformer.
    """
    if not hasattr(df, "sparkSession") or not hasattr(df.sparkSession, "sparkContext"):
        raise TypeError("df: expected a data frame of a classic Spark session, got another")
    missing = [name for name in [target, *(features or [])] if name and name not in df.columns]
    if missing:
        raise ValueError(f"column {missing[0]!r}: expected one of {df.columns}")
    features = [name for name in features or df.columns if name != target]
    check_columns(df, features)
    df = df.select(*features, *([] if target is None else [target]))
    estimator = TMMDensity(**parameters) if target is None else TMMClassifier(**parameters)
    threads = 1 if estimator.n_jobs is None else estimator._threads()
    partitions = SparkPartitions(df, target, threads)
    try:
        estimator._fit_partitions(partitions)
    finally:
        partitions.release()
    return TMMModel(estimator.model_.to_bytes())


# Questions.


def answered(model: Any, outputs: list[str], batches: Batches) -> Batches:
    """The rows of a partition with what the model says of them."""
    estimator = opened(_engine.Model.from_bytes(model.value))
    estimator.n_jobs = 1  # executors have tasks enough
    number = TaskContext.get().partitionId()
    for batch in batches:
        if len(batch) == 0:
            continue
        table = pa.Table.from_batches([batch])
        with in_partition(number):
            rows = without_decimals(table.select(estimator.feature_names_in_.tolist()))
            for name in outputs:
                table = table.append_column(name, answer(estimator, name, rows))
        yield from table.to_batches()


def answer(estimator: TMM, name: str, rows: pa.Table) -> pa.Array:
    """One column that `transform` adds."""
    if name == "log_likelihood":
        return pa.array(estimator.score_samples(rows))
    if name == "completed":
        return completed(rows, estimator.impute(rows))
    posterior = estimator.predict_proba(rows)
    if name == "probability":
        return pa.array(list(posterior), pa.list_(pa.float64()))
    classes = estimator.classes_
    kind = {"i": pa.int64(), "b": pa.bool_()}.get(classes.dtype.kind, pa.string())
    return pa.array(classes[posterior.argmax(axis=1)].tolist(), kind)


def completed(rows: pa.Table, filled: pa.Table) -> pa.Array:
    """Completed rows as one column, of the same type for every partition."""
    columns = []
    for field, column in zip(rows.schema, filled.columns, strict=True):
        kind = pa.float64() if pa.types.is_integer(field.type) else field.type
        columns.append(column.cast(kind).combine_chunks())
    return pa.StructArray.from_arrays(columns, names=rows.column_names)


class TMMModel(Model, MLWritable, MLReadable):
    """A trained model as a transformer.

    `transform` adds the columns that `outputs` names: `prediction` and `probability` where the
    model has classes, in the order of `classes`; `log_likelihood`, log P(x_o); and `completed`,
    the columns of the model with their nulls filled.
    """

    outputs = Param(
        Params._dummy(), "outputs", "columns to add", typeConverter=TypeConverters.toListString
    )

    def __init__(self, model: bytes) -> None:
        super().__init__()
        self.model = bytes(model)
        self.estimator = opened(_engine.Model.from_bytes(self.model))
        self._setDefault(outputs=[name for name in OUTPUTS if self._has(name)])

    @property
    def classes(self) -> list:
        """The classes, in the order of `probability`; none where the model is a density."""
        return self.estimator.classes_.tolist() if self._has("prediction") else []

    def setOutputs(self, names: list[str]) -> TMMModel:
        """Chooses the columns that `transform` adds."""
        unknown = [name for name in names if name not in OUTPUTS or not self._has(name)]
        if unknown:
            known = [name for name in OUTPUTS if self._has(name)]
            raise ValueError(f"outputs: expected some of {known}, got {unknown[0]!r}")
        return self._set(outputs=list(names))

    def _has(self, name: str) -> bool:
        return hasattr(self.estimator, "classes_") or name not in ("prediction", "probability")

    def _transform(self, dataset: DataFrame) -> DataFrame:
        features = self.estimator.feature_names_in_.tolist()
        missing = [name for name in features if name not in dataset.columns]
        if missing:
            raise ValueError(f"column {missing[0]!r}: expected by the model, got {dataset.columns}")
        names = self.getOrDefault(self.outputs)
        taken = [name for name in names if name in dataset.columns]
        if taken:
            raise ValueError(f"column {taken[0]!r}: expected no such column yet, got one")
        fields = [StructField(name, self._type(name, dataset)) for name in names]
        schema = StructType([*dataset.schema.fields, *fields])
        shared = dataset.sparkSession.sparkContext.broadcast(self.model)
        return dataset.mapInArrow(partial(answered, shared, names), schema)

    def _type(self, name: str, dataset: DataFrame) -> Any:
        if name == "log_likelihood":
            return DoubleType()
        if name == "probability":
            return ArrayType(DoubleType())
        if name == "prediction":
            kind = self.estimator.classes_.dtype.kind
            return {"i": LongType(), "b": BooleanType()}.get(kind, StringType())
        features = self.estimator.feature_names_in_.tolist()
        fields = dataset.select(features).schema.fields
        return StructType(
            [StructField(field.name, filled_type(field.dataType)) for field in fields]
        )

    def write(self) -> MLWriter:
        """Writes the model; Spark's `save` calls it."""
        return ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader:
        """Reads a model; Spark's `load` calls it."""
        return ModelReader()


def filled_type(kind: Any) -> Any:
    """What fills the nulls of whole numbers need not be whole."""
    return DoubleType() if isinstance(kind, (IntegralType, DecimalType)) else kind


class ModelWriter(MLWriter):
    """Parameters as Spark writes them, and the model file as a table of one row."""

    def __init__(self, instance: TMMModel) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sparkSession)
        row = [(bytearray(self.instance.model),)]
        self.sparkSession.createDataFrame(row, "model binary").write.parquet(f"{path}/model")


class ModelReader(MLReader):
    """What `ModelWriter` wrote."""

    def load(self, path: str) -> TMMModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(f"{path}/model").head()
        model = TMMModel(row.model)
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


class TMMEstimator(Estimator, DefaultParamsWritable, DefaultParamsReadable):
    """`fit` as a stage of a `Pipeline`."""

    target = Param(
        Params._dummy(), "target", "column of labels", typeConverter=TypeConverters.toString
    )
    features = Param(
        Params._dummy(), "features", "other columns", typeConverter=TypeConverters.toListString
    )
    parameters = Param(
        Params._dummy(), "parameters", "JSON of others", typeConverter=TypeConverters.toString
    )

    @keyword_only
    def __init__(self, *, target: str | None = None, features: list[str] | None = None) -> None:
        super().__init__()
        self._setDefault(parameters="{}")
        self._set(**{name: value for name, value in self._input_kwargs.items() if value})

    def setParameters(self, **parameters: Any) -> TMMEstimator:
        """Parameters of `sumout.batches.TMMClassifier` or `TMMDensity`."""
        return self._set(parameters=json.dumps(parameters))

    def _fit(self, dataset: DataFrame) -> TMMModel:
        target = self.getOrDefault(self.target) if self.isSet(self.target) else None
        features = self.getOrDefault(self.features) if self.isSet(self.features) else None
        parameters = json.loads(self.getOrDefault(self.parameters))
        return fit(dataset, target, features, **parameters)
