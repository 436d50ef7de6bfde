"""CSV and Parquet: `train`, `cv`, `predict`, `convert` and `export`, from a table to the end."""

import io
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import datasets
from apcg.cli import main
from apcg.datasets import DataError, Table, tables
from apcg.model import LinearModel

pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def apcg(capsys):
    def run(*args, code=0):
        with pytest.raises(SystemExit) as left:
            main([*map(str, args)])
        out, err = capsys.readouterr()
        assert left.value.code == code, err
        assert "Traceback" not in err
        return out, err

    return run


def frame(classes, n=240, seed=0):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(
        {
            "id": np.arange(n),
            "age": rng.uniform(20, 70, n).round(2),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "zip": rng.choice([101, 202, 303], n),
            "member": rng.random(n) < 0.5,
        }
    )
    z = (made.age - 45) / 10 + 2 * (made.city == "Oslo") + 1.0 * (made.zip == 202) + made.member
    if classes is None:
        made["y"] = z
    else:
        noisy = z + 0.3 * rng.standard_normal(n)
        made["y"] = pd.qcut(noisy, len(classes), labels=False).map(dict(enumerate(classes)))
    return made


def one_hot(made):
    """X as scikit-learn's encoder makes it: an independent way."""
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(sparse_output=False)
    words = made[["city", "zip"]].astype(str)
    city, codes = np.split(
        encoder.fit_transform(words), [len(encoder.fit(words).categories_[0])], 1
    )
    numbers = made[["age", "member"]].to_numpy(dtype=float)
    return np.hstack([numbers[:, :1], city, codes, numbers[:, 1:]])


OPTIONS = ("--target", "y", "--drop", "id", "--categorical", "zip")


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet"])
@pytest.mark.parametrize("rows", [tables.ROWS, 50])
def test_a_table_is_what_scikit_learn_makes_of_it(kind, rows, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", rows)
    made, name = frame(("no", "yes")), f"d.{kind}"
    if kind == "parquet":
        made.to_parquet(name)
    else:
        made.to_csv(name, index=False, sep="\t" if kind == "tsv" else ",")
    found = datasets.load(name, target="y", drop=["id"], categorical=["zip"])
    assert np.array_equal(found.X.toarray(), one_hot(made))
    assert found.y.tolist() == made.y.tolist()
    assert found.table.features == [
        "age", "city=Bern", "city=Oslo", "city=Rome", "zip=101", "zip=202", "zip=303", "member",
    ]  # fmt: skip
    assert Table.of(json.loads(json.dumps(found.table.record()))) == found.table


@pytest.mark.parametrize("classes", [("no", "yes"), ("low", "mid", "high")])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_from_a_table_to_the_end(classes, kind, apcg):
    made, fresh = frame(classes), frame(classes, 60, seed=1)
    for name, some in (("data", made), ("test", fresh), ("new", fresh.drop(columns="y"))):
        some.to_csv(f"{name}.csv", index=False)
        some.to_parquet(f"{name}.parquet")
    found = json.loads(apcg("cv", f"data.{kind}", *OPTIONS, "--loss", "logistic", "--alphas",
                            "1,1e-2,1e-4", "--plot", "p.png", "--json")[0])  # fmt: skip
    assert [row["alpha"] for row in found["alphas"]] == [1, 1e-2, 1e-4]
    assert found["best"] <= found["one_standard_error"]
    assert (found["folds"], found["measure"]) == (5, "accuracy")
    assert Path("p.png").read_bytes()[:4] == b"\x89PNG"
    said = json.loads(apcg("train", f"data.{kind}", *OPTIONS, "--loss", "logistic", "--alpha",
                           found["alpha"], "--model", "m.npz", "--test", f"test.{kind}",
                           "--json")[0])  # fmt: skip
    assert said["certificate"]["converged"]
    assert said["intercept"]  # as in the estimators
    out, err = apcg("predict", "m.npz", f"test.{kind}")
    right = np.mean(np.array(out.split()) == fresh.y.to_numpy())
    assert right == pytest.approx(said["scores"]["test"])
    assert right > 0.7
    assert err == f"accuracy {right:.4f} on 60 labels\n"
    assert apcg("predict", "m.npz", f"new.{kind}") == (out, "")  # without labels, the same
    told = json.loads(apcg("predict", "m.npz", f"test.{kind}", "--proba", "--json")[0])
    assert told["scores"] == {"measure": "accuracy", "value": right, "n": 60}
    if len(classes) == 3:
        assert np.sum(told["predictions"], axis=1) == pytest.approx(np.ones(60))
    served(classes, fresh, np.array(out.split()), told["predictions"], apcg)


def served(classes, fresh, labels, probabilities, apcg):
    """The ONNX file predicts the same, by onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    apcg("export", "m.npz", "m.onnx")
    session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    X = one_hot(fresh).astype(np.float32)
    label, z, shares = session.run(["label", "decision", "probabilities"], {"X": X})
    model = LinearModel.load("m.npz")
    exact = model.decision(X.astype(float))
    assert z == pytest.approx(exact, rel=1e-3, abs=1e-3)
    sure = np.abs(exact) > 1e-2 if exact.ndim == 1 else np.ones(60, dtype=bool)
    assert label[sure].tolist() == labels[sure].tolist()
    given = np.array(probabilities)
    assert (shares[:, 1] if len(classes) == 2 else shares) == pytest.approx(given, abs=1e-3)
    assert shares.sum(axis=1) == pytest.approx(np.ones(60), abs=1e-5)


def test_regression_and_a_model_for_onnx(apcg):
    frame(None).to_csv("d.csv", index=False)
    apcg("train", "d.csv", *OPTIONS, "--model", "m.npz")
    out, err = apcg("predict", "m.npz", "d.csv")
    y, made = frame(None).y.to_numpy(), np.array(out.split(), dtype=float)
    r2 = 1 - np.sum((y - made) ** 2) / np.sum((y - y.mean()) ** 2)
    assert err == f"R^2 {r2:.4f} on 240 labels\n"
    assert r2 > 0.99
    runtime = pytest.importorskip("onnxruntime")
    apcg("export", "m.npz", "m.onnx")
    session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(["prediction"], {"X": one_hot(frame(None)).astype(np.float32)})
    assert found == pytest.approx(made, abs=1e-3)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_convert_streams_a_table(kind, apcg, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 50)
    made = frame(("a", "b", "c"))
    made.to_csv("d.csv", index=False)
    made.to_parquet("d.parquet")
    apcg("convert", f"d.{kind}", "d.apcg", *OPTIONS)
    folder = datasets.load("d.apcg")
    whole = datasets.load(f"d.{kind}", target="y", drop=["id"], categorical=["zip"])
    assert folder.table == whole.table
    assert folder.y.tolist() == whole.y.tolist()
    for name in ("d.apcg", f"d.{kind}"):
        options = () if name == "d.apcg" else OPTIONS
        apcg("train", name, *options, "--model", f"{name}.npz")
    first, second = (LinearModel.load(f"{name}.npz") for name in ("d.apcg", f"d.{kind}"))
    assert first.w == pytest.approx(second.w, rel=1e-6, abs=1e-6)
    assert first.table == second.table  # a model of the folder takes tables
    assert apcg("predict", "d.apcg.npz", "d.csv") == apcg("predict", f"d.{kind}.npz", "d.apcg")


def test_standard_input(apcg, monkeypatch):
    text = frame((0, 1)).to_csv(index=False).encode()
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(text)))
    monkeypatch.setattr(sys, "stdin", stdin)
    out, _ = apcg("train", "-", *OPTIONS, "--model", "m.npz")
    assert "240 samples, 8 features" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text))))
    assert "accuracy" in apcg("predict", "m.npz", "-")[1]


def test_words_after_numbers_in_a_column(monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 2)
    Path("d.csv").write_text("x,y\n1,0\n2,1\n3,0\nfour,1\n")
    found = datasets.load("d.csv", target="y")
    assert found.table.features == ["x=1", "x=2", "x=3", "x=four"]
    assert np.array_equal(found.X.toarray(), np.eye(4))


@pytest.mark.filterwarnings("default")
def test_missing_and_new_words(apcg):
    pd.DataFrame({"c": ["a", None, "b", "a"], "y": [0, 1, 0, 1]}).to_csv("d.csv", index=False)
    found = datasets.load("d.csv", target="y")
    assert found.table.features == ["c=", "c=a", "c=b"]
    apcg("train", "d.csv", "--target", "y", "--model", "m.npz")
    pd.DataFrame({"c": ["z", "a"]}).to_csv("new.csv", index=False)
    out, err = apcg("predict", "m.npz", "new.csv", "--decision")
    assert "new.csv has 1 words that the training data has not" in err
    assert float(out.split()[0]) == pytest.approx(LinearModel.load("m.npz").intercept)


def test_labels_true_and_false(apcg):
    made = frame((0, 1))
    made["y"] = made.y == 1
    for name in ("d.csv", "d.parquet"):
        made.to_csv(name, index=False) if name[-1] == "v" else made.to_parquet(name)
        apcg("train", name, *OPTIONS, "--model", "m.npz")
        assert set(apcg("predict", "m.npz", name)[0].split()) == {"True", "False"}


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("x,y\n1,0\n,1\n", {"target": "y"}, r"d.csv, row 2: 'x' is missing, and a finite number"),
        ("x,y\n1,0\ninf,1\n", {"target": "y"}, r"row 2: 'x' is inf, and a finite number"),
        ("x,y\n1,0\n2,\n", {"target": "y"}, r"row 2: 'y' is missing"),
        ("x,y\n1,a\n2,\n3,b\n", {"target": "y"}, r"row 2: the target 'y' is missing"),
        ("x,y\n1,0\n", {"target": "z"}, r"no column 'z'. Its columns, by its first line, are x, y"),
        ("x,y\n1,0\n", {"target": "y", "drop": ["q"]}, "no column 'q'"),
        ("x,e,y\n1,,0\n", {"target": "y"}, "the column 'e' of d.csv is empty"),
        ("x,y\n", {"target": "y"}, "has no rows"),
        ("", {"target": "y"}, "no sound CSV table"),
        ("y\n1\n", {"target": "y"}, "no columns of features"),
        ("a,b\n1,2\n1,2,3,4\n", {"target": "b"}, "no sound CSV table"),
        ("a,b\n7,1,2\n8,1,2\n", {"target": "b"}, "more fields in its rows than names in its first"),
    ],
)
def test_what_is_wrong_with_a_table(text, options, said):
    Path("d.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        datasets.load("d.csv", **options)


def test_what_is_wrong_with_parquet_and_the_command(apcg, monkeypatch):
    frame((0, 1)).to_csv("d.csv", index=False)
    assert "say which column has the labels, with --target" in apcg("train", "d.csv", code=1)[1]
    Path("bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="no sound Parquet table"):
        datasets.load("bad.parquet", target="y")
    dated = frame((0, 1))
    dated["when"] = pd.Timestamp("2020-01-01")
    dated.to_parquet("dated.parquet")
    with pytest.raises(
        DataError, match=r"'when' of dated.parquet has type datetime.*--drop 'when'"
    ):
        datasets.load("dated.parquet", target="y")
    with pytest.raises(DataError, match="target, drop and categorical are for CSV and Parquet"):
        datasets.load("breast_cancer", target="y")
    assert "there is no file no.csv" in apcg("train", "no.csv", *OPTIONS, code=1)[1]
    apcg("train", "d.csv", *OPTIONS, "--model", "m.npz")
    said = apcg("predict", "m.npz", "d.csv", "--target", "y", code=2)[1]
    assert "no --target here. A model knows the columns" in said
    dated[["age", "y"]].to_csv("less.csv", index=False)
    assert "has no column 'city'" in apcg("predict", "m.npz", "less.csv", code=1)[1]
    apcg("train", "breast_cancer", "--model", "b.npz")
    said = apcg("predict", "b.npz", "d.csv", code=1)[1]
    assert "trained with features that have no names" in said
    for package, name in (("pandas", "d.csv"), ("pyarrow", "d.parquet")):
        frame((0, 1)).to_parquet("d.parquet") if name == "d.parquet" else None
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, package, None)
            patched.setitem(sys.modules, f"{package}.parquet", None)
            said = apcg("train", name, "--target", "y", code=1)[1]
        assert f"{package} reads: pip install 'apcg[tables]'" in said


def test_a_comma_at_the_end_of_each_row_is_no_field():
    Path("d.csv").write_text("x,y\n3,0,\n4,1,\n")
    given = datasets.load("d.csv", target="y")
    np.testing.assert_array_equal(given.X, [[3.0], [4.0]])
    np.testing.assert_array_equal(given.y, [0.0, 1.0])


def test_one_word_in_a_column_of_numbers_is_told():
    rows = [f"{k / 7},{k % 2}" for k in range(20)]
    Path("d.csv").write_text("\n".join(["x,y", *rows, "?,1"]))
    with pytest.warns(UserWarning, match=r"'x' has 20 different numbers and also '\?'"):
        assert datasets.load("d.csv", target="y").X.shape == (21, 21)
    with warnings.catch_warnings():  # as they are meant to be words
        warnings.simplefilter("error")
        datasets.load("d.csv", target="y", categorical=["x"])


def test_names_are_no_categories():
    made = frame((0, 1))
    made["name"] = [f"n{k}" for k in range(len(made))]
    made.to_csv("d.csv", index=False)
    with pytest.warns(UserWarning, match=r"240 different words in 240 rows.*--drop 'name'"):
        found = datasets.load("d.csv", target="y")
    assert sp.issparse(found.X)
