"""A module imports only modules above it in this list, so that there are no circles."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "sumout"

LAYERS = [
    "_engine",  # the Rust extension
    "names",
    "notices",
    "labels",
    "dates",
    "columns",
    "bounds",
    "files",
    "progress",
    "parameters",
    "training_set",
    "estimator",
    "classifier",
    "density",
    "regressor",
    "loading",
    "__init__",
    "partitions",
    "batches",
    "dask",
    "spark",
]


def imported(tree):
    """Modules of this package that a file imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.ImportFrom):
            raise AssertionError(f"line {node.lineno}: expected an absolute import")
        else:
            continue
        for name in names:
            package, _, module = name.partition(".")
            if package == "sumout" and module in LAYERS:
                yield module


def test_every_module_has_its_layer():
    files = {path.stem for path in PACKAGE.glob("*.py")} | {"_engine"}
    assert files == set(LAYERS)


def test_imports_go_one_way():
    for place, module in enumerate(LAYERS):
        if module == "_engine":
            continue
        tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
        below = set(imported(tree)) - set(LAYERS[:place])
        assert not below, f"{module}.py imports {sorted(below)}, which is not above it"


def test_no_import_is_inside_a_function():
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = [n for n in ast.walk(node) if isinstance(n, (ast.Import, ast.ImportFrom))]
                assert not inside, (
                    f"{path.name}, {node.name}: imports belong to the top of the file"
                )
