"""The model in plain NumPy, from its formulas and the bytes of a model file.

Slow, in float64 and log space.

leaf      log φ⁰_i(d) = Σ_s log p(x_is | d)             a missing value drops out of the sum
factors   log φ⁰_i(d) = log N(x_io; μ_o, Λ_o Λ_oᵀ + diag σ_o²) of the numbers, and the same sum of the categories
mixing    ψ_j(c)      = Σ_a W_j[c,a] φ_j(a)
product   φ_p(c)      = Π_{j child of p} ψ_j(c)
classes   P(X|y)      = Σ_a W_top[y,a] φ(a)
curve     z = (w(x) − offset) · scale,  w of straight pieces between knots; log p(x) = log p(z) + log dz/dx
"""

import json

import numpy as np
from scipy.special import log_softmax, logsumexp


def read(data):
    """The structure, and its tensors by name."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    text = json.loads(header.pop("__metadata__")["sumout"])
    structure = text["structure"]
    structure["knots"] = text.get("knots", [])  # of the curve of each column

    def tensor(entry):
        first, last = (8 + size + offset for offset in entry["data_offsets"])
        kind = {"F32": "<f4", "F64": "<f8"}[entry["dtype"]]
        return np.frombuffer(data[first:last], kind).reshape(entry["shape"]).astype(float)

    return structure, {name: tensor(entry) for name, entry in header.items()}


def leaf_logs(tree, x, prefix, tensors):
    """log φ⁰ of every position, (N, M), of one row in the units of the model."""
    numbers, tables = 0, 0
    densities = []  # by family: a function for each coordinate
    normals = []  # by family: mean and log σ of each coordinate that is a number
    for family in tree["families"]:
        of_family = []
        normals.append({})
        for kind in family:
            if kind == "gaussian":
                mean, log_sigma = (
                    tensors[f"{prefix}.leaves.{name}"][numbers] for name in ("mean", "log_sigma")
                )
                normals[-1][len(of_family)] = mean, log_sigma
                of_family.append(
                    lambda x, m=mean, s=log_sigma: (
                        -0.5 * ((x - m) / np.exp(s)) ** 2 - s - 0.5 * np.log(2 * np.pi)
                    )
                )
                numbers += 1
            else:
                count = kind["categorical"]
                table = log_softmax(
                    tensors[f"{prefix}.leaves.logits"][tables : tables + count], axis=0
                )
                of_family.append(lambda x, t=table: t[int(x)])
                tables += count
        densities.append(of_family)
    logs = np.zeros((len(tree["positions"]), tree["components"]))
    for i, position in enumerate(tree["positions"]):
        family, inputs = position["family"], position["inputs"]
        loadings = tensors.get(f"{prefix}.leaves{family}.loadings")
        seen = [s for s, place in enumerate(inputs) if not np.isnan(x[place])]
        if loadings is not None:
            together = [s for s in seen if s in normals[family]]
            seen = [s for s in seen if s not in together]
            numbers = x[[inputs[s] for s in together]]
            logs[i] += log_normals(
                numbers, [normals[family][s] for s in together], loadings[together]
            )
        for s in seen:
            logs[i] += densities[family][s](x[inputs[s]])
    return logs


def log_normals(x, normals, loadings):
    """log N(x; μ, Λ Λᵀ + diag σ²) of every component, (M); 0 where there is no number."""
    if len(x) == 0:
        return 0.0
    mean, log_sigma = np.transpose(normals, (1, 2, 0))  # (M, S) each
    covariance = np.einsum("srm,trm->mst", loadings, loadings)
    covariance += np.exp(2 * log_sigma)[:, :, None] * np.eye(len(x))
    apart = np.linalg.solve(covariance, (x - mean)[:, :, None])[:, :, 0]
    _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * (apart * (x - mean)).sum(axis=1) - 0.5 * log_determinant


def bend(structure, tensors, row):
    """w of one row, and Σ log w'."""
    row = row.astype(np.float32).astype(float)  # as a model sees it
    w, logs, first = row.copy(), 0.0, 0
    for column, count in enumerate(structure["knots"]):
        x, y = (tensors[f"curves.{axis}"][first : first + count] for axis in "xy")
        first += count
        if count == 0 or np.isnan(row[column]):
            continue
        before = int((x <= row[column]).sum())
        if 0 < before < count:
            slope = (y[before] - y[before - 1]) / (x[before] - x[before - 1])
        else:
            slope = (y[-1] - y[0]) / (x[-1] - x[0])
        at = max(before - 1, 0)
        w[column] = y[at] + (row[column] - x[at]) * slope
        logs += np.log(slope)
    return w, logs


def log_likelihood(data, row):
    """log P(x_o|y) of one row of a table, (K), in the units of the data."""
    structure, tensors = read(data)
    offset, scale = tensors["scaling.offset"], tensors["scaling.scale"]
    number = np.array([kind == "gaussian" for kind in structure["kinds"]])
    row, slopes = bend(structure, tensors, row)
    x = np.where(number, (row - offset) * scale, row)
    tops = []
    for t, tree in enumerate(structure["trees"]):
        logs = leaf_logs(tree, x, f"tree{t}", tensors)
        for depth, level in enumerate(tree["levels"], start=1):
            weights = log_softmax(tensors[f"tree{t}.level{depth}.logits"], axis=2)[
                level["weight_of"]
            ]  # (nodes, C, A)
            mixed = logsumexp(weights + logs[:, None, :], axis=2)
            logs = np.array([mixed[children].sum(axis=0) for children in level["children"]])
        tops.append(logs[0])
    classes = log_softmax(tensors["classes.logits"], axis=1)
    units = np.log(scale[number & ~np.isnan(row)]).sum() + slopes
    return logsumexp(classes + np.concatenate(tops), axis=1) + units
