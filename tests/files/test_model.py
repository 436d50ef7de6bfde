"""A model in a file: the same to the last bit, or refused."""

import json
import stat

import numpy as np
import pytest

from apcg import ERM, solve
from apcg._base.files import replacing
from apcg.datasets import DataError, text_like
from apcg.model import LinearModel, encode_labels, targets


def trained(classes=(-1.0, 1.0), loss="logistic"):
    X, y = text_like(300, 60, 8)
    r = solve(ERM(X, y, loss, alpha=1e-3), random_state=0)
    return X, y, LinearModel(r.w, np.array(classes), loss, 0.25, False, {"seed": 0, "é": [1.5]})


@pytest.mark.parametrize("classes", [(-1.0, 1.0), (0, 1), (1, 2), ("ham", "spam"), ("nein", "ja")])
def test_round_trip_is_exact(classes, tmp_path):
    X, _, model = trained(sorted(classes))
    path = tmp_path / "model.npz"
    model.save(path)
    again = LinearModel.load(path)
    assert again.w.tobytes() == model.w.tobytes()
    assert again.decision(X).tobytes() == model.decision(X).tobytes()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.probabilities(X), model.probabilities(X))
    for name in ("loss", "intercept", "zero_based", "facts"):
        assert getattr(again, name) == getattr(model, name)
    assert set(again.predict(X).tolist()) == set(classes)
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def test_regression_round_trip(tmp_path):
    X, y, _ = trained()
    r = solve(ERM(X, y, "squared", alpha=1e-3), random_state=0)
    model = LinearModel(r.w, None, "squared")
    model.save(tmp_path / "m")
    again = LinearModel.load(tmp_path / "m")
    assert again.classes is None
    np.testing.assert_array_equal(again.predict(X), X @ r.w)
    assert again.score(X, y)[0] == "r2"
    assert 0 < again.score(X, y)[1] < 1
    with pytest.raises(DataError, match="gives no probabilities"):
        again.probabilities(X)


def test_every_cut_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    trained()[2].save(path)
    whole = path.read_bytes()
    for size in {*range(0, len(whole), 97), len(whole) - 1}:
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="not a sound model file"):
            LinearModel.load(path)


def test_every_changed_byte_is_refused_or_harmless(tmp_path):
    """A flipped bit is refused, or changes nothing (a zip also has dates and the like)."""
    path = tmp_path / "m.npz"
    X, _, model = trained()
    model.save(path)
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 13):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            again = LinearModel.load(path)
        except DataError:
            refused += 1
        else:
            assert again.decision(X).tobytes() == model.decision(X).tobytes()
            assert again.facts == model.facts
    assert refused > 0.7 * len(range(0, len(whole), 13))


def tamper(path, **changes):
    with np.load(path) as archive:
        parts = dict(archive)
    parts |= changes
    np.savez(path, **{k: v for k, v in parts.items() if v is not None})


def test_tampering_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    _, _, model = trained()
    text = None
    for changes in (
        {"w": model.w * 2},
        {"w": model.w[:-1]},
        {"w": model.w.astype(np.float32)},
        {"w": None},
        {"classes": np.array([1.0, -1.0])},
        {"classes": None},
        {"header": np.array("{}")},
        {"header": None},
        {"seal": None},
        {"more": np.ones(3)},
    ):
        model.save(path)
        tamper(path, **changes)
        with pytest.raises(DataError, match="not a sound model file"):
            LinearModel.load(path)
    model.save(path)
    with np.load(path) as archive:
        text = str(archive["header"])
    tamper(path, header=np.array(text.replace("logistic", "squared")))
    with pytest.raises(DataError, match="do not match"):
        LinearModel.load(path)
    assert json.loads(text)["format"] == "apcg-model-1"


def test_what_is_no_model(tmp_path):
    path = tmp_path / "m"
    for content in (b"", b"hello", b"\x80\x04K\x01."):  # the last is a pickle
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a sound model file"):
            LinearModel.load(path)
    np.savez(tmp_path / "o.npz", w=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="not a sound model file"):
        LinearModel.load(tmp_path / "o.npz")
    with pytest.raises(DataError, match="No such file"):
        LinearModel.load(tmp_path / "missing")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.npz"
    model = trained()[2]
    model.save(path)
    before = path.read_bytes()
    model.facts = {"cannot": object()}
    with pytest.raises(TypeError):
        model.save(path)

    def half():
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


def test_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    trained()[2].save(tmp_path / "m")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "m")]
    assert modes[0] == modes[1]


def test_labels():
    for y, expected in (
        ([0, 1, 1], [-1, 1, 1]),
        ([1, 2, 2], [-1, 1, 1]),
        (["b", "a", "b"], [1, -1, 1]),
        ([True, False], [1, -1]),
    ):
        signs, classes = encode_labels(np.array(y))
        assert signs.tolist() == expected
        assert [classes[int(s > 0)] for s in signs] == y
    with pytest.raises(DataError, match=r"two classes, got 3 \(0, 1, 2\).*--loss squared"):
        encode_labels(np.array([0, 1, 2]))
    with pytest.raises(DataError, match=r"got 1 \(5\)"):
        encode_labels(np.array([5, 5]))
    with pytest.raises(DataError, match="no labels"):
        encode_labels(None)
    with pytest.raises(DataError, match="got words"):
        targets(np.array(["a"]))


def test_wrong_features_and_labels():
    X, _, model = trained()
    with pytest.raises(DataError, match="has 59 features, and the model was trained with 60"):
        model.predict(X[:, :59])
    with pytest.raises(DataError, match=r"labels that the training data has not: 3"):
        model.score(X, np.full(X.shape[0], 3))
